"""The tool that every library protects. It adds a line to a file, and then does as it is told."""

import os
import time

how = "answer"


def act(invoice: str) -> dict:
    effects = os.open("effects", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(effects, f"{invoice}\n".encode())
    os.close(effects)
    if how == "raise":
        raise TimeoutError("the answer was lost")
    if how == "die":
        os._exit(9)
    if how == "linger":
        time.sleep(0.5)  # longer than the other processes need to ask for the same
    return {"id": f"ch_{invoice}"}
