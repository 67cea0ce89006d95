import os

from aws_lambda_powertools.utilities.idempotency import idempotent_function  # protects
from aws_lambda_powertools.utilities.idempotency.persistence.redis import RedisCachePersistenceLayer  # protects
from world import act

layer = RedisCachePersistenceLayer(host="127.0.0.1", port=int(os.environ["REDIS_PORT"]), ssl=False)  # protects


@idempotent_function(data_keyword_argument="invoice", persistence_store=layer)  # protects
def pay(invoice: str) -> dict:
    return act(invoice)


def charge(invoice: str) -> dict:
    return pay(invoice=invoice)
