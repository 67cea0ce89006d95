-- The one write: compares versions and writes values and entries, group by group. It knows no rule of the ledger.
-- A value lies behind eight bytes of version. Nothing ever expires.
local values, index, channel = KEYS[1], KEYS[2], KEYS[3]
local at = 0
local function take()
  at = at + 1
  return ARGV[at]
end

-- Nil: the server has another history than the sender knows.
if string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)') ~= take() then
  return nil
end
-- Fails here, before anything is written, if somebody keeps something else under this key.
redis.call('ZCARD', index)

local last = tonumber(redis.call('HGET', values, 'last') or '0')
local function number(first)
  return struct.pack('>I8', first + tonumber(take()))
end

-- A later one comes first.
local function inverted(first)
  return (string.gsub(number(first), '.', function(byte) return string.char(255 - string.byte(byte)) end))
end

local news = take()
local landed = {}
for group = 1, tonumber(take()) do
  local compares, writes, numbers = tonumber(take()), tonumber(take()), tonumber(take())
  local same = true
  for _ = 1, compares do
    local name, version = take(), take()
    if same then
      local found = redis.call('HGET', values, name)
      same = (found and string.sub(found, 1, 8) or '') == version
    end
  end
  local first = last + 1
  local version = struct.pack('>I8', last + math.max(numbers, 1))
  local put, delete, enter, leave = {}, {}, {}, {}
  for _ = 1, writes do
    local kind = take()
    if kind == 'put' then
      put[#put + 1] = take()
      put[#put + 1] = version .. take()
    elseif kind == 'put numbered' then
      put[#put + 1] = take()
      put[#put + 1] = version .. take() .. number(first) .. take()
    elseif kind == 'delete' then
      delete[#delete + 1] = take()
    elseif kind == 'leave' then
      leave[#leave + 1] = take()
    elseif kind == 'enter inverted' then
      enter[#enter + 1] = 0
      enter[#enter + 1] = take() .. inverted(first) .. take()
    else
      enter[#enter + 1] = 0
      enter[#enter + 1] = kind == 'enter' and take() or take() .. number(first) .. take()
    end
  end
  if same then
    last = last + math.max(numbers, 1)
    if #put > 0 then redis.call('HSET', values, unpack(put)) end
    if #delete > 0 then redis.call('HDEL', values, unpack(delete)) end
    if #leave > 0 then redis.call('ZREM', index, unpack(leave)) end
    if #enter > 0 then redis.call('ZADD', index, unpack(enter)) end
  end
  landed[group] = same and 1 or 0
end
redis.call('HSET', values, 'last', string.format('%.0f', last))
if news ~= '' then redis.call('PUBLISH', channel, news) end
return landed
