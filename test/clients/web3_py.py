# web3.py as it comes, over HTTP and a WebSocket: calls, batches, a transaction, filters and subscriptions. Speaks the protocol of protocol.ts.
import asyncio
import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from eth_account import Account
from web3 import AsyncWeb3, HTTPProvider, Web3, WebSocketProvider
from web3.exceptions import BlockNotFound, TransactionNotFound

TASK = json.loads(sys.argv[1])
EMITTER = Web3.to_checksum_address(TASK["emitter"])
ACCOUNT = Account.from_key(TASK["key"])
ATTEMPT_S = 45
BATCH = 100
AT_ONCE_HTTP, AT_ONCE_WS = 100, 500


def tell(feature, wire, status, note="", longest=160):
    print(json.dumps({"feature": feature, "wire": wire, "status": status, "note": " ".join(str(note).split())[:longest]}), flush=True)


def expect(holds, what):
    if not holds:
        raise Exception(what)


def text_of(hash):
    text = hash.hex()
    return text if text.startswith("0x") else "0x" + text


def address_of(n):
    return Web3.to_checksum_address("0x" + format(n, "040x"))


def transaction(w3_values, to):
    nonce, gas_price = w3_values
    fees = {"maxFeePerGas": gas_price * 2, "maxPriorityFeePerGas": 1_000_000_000}
    return ACCOUNT.sign_transaction({"to": to, "value": 0, "gas": 200_000, "nonce": nonce, "chainId": 31337, **fees}).raw_transaction


class Watched:
    def __init__(self, feature, wire):
        self.feature, self.wire, self.seen, self.errors = feature, wire, [], []


# HTTP, with the ordinary interface.


def attempt(feature, wire, run):
    try:
        tell(feature, wire, "ok", run() or "")
    except Exception as error:
        tell(feature, wire, "fails", error)


def poll(filter, wanted, deadline):
    seen = []
    while wanted not in seen:
        expect(time.monotonic() < deadline, "an event did not come in time")
        seen += [text_of(it["transactionHash"]) if hasattr(it, "keys") else text_of(it) for it in filter.get_new_entries()]
        time.sleep(0.1)
    return seen


def http_calls(w3):
    def basics():
        height = w3.eth.block_number
        expect(w3.eth.chain_id == 31337 and w3.eth.get_balance(ACCOUNT.address) > 0, "wrong answers")
        expect(len(w3.eth.get_code(EMITTER)) > 0 and w3.eth.get_block(height)["number"] == height, "wrong answers")

    def accounts():
        expect(w3.eth.accounts == [], "not []")

    def send(to):
        raw = transaction((w3.eth.get_transaction_count(ACCOUNT.address), w3.eth.gas_price), to)
        return w3.eth.wait_for_transaction_receipt(w3.eth.send_raw_transaction(raw), timeout=30)

    def sending():
        expect(send(ACCOUNT.address)["status"] == 1, "the transaction failed")

    def batch():
        with w3.batch_requests() as requests:
            for n in range(BATCH):
                requests.add(w3.eth.get_balance(address_of(n + 1)))
            expect(requests.execute() == [0] * BATCH, "calls are missing")
        return f"{BATCH} calls in one batch"

    def at_once():
        with ThreadPoolExecutor(AT_ONCE_HTTP) as threads:
            balances = list(threads.map(w3.eth.get_balance, [address_of(n + 1) for n in range(AT_ONCE_HTTP)]))
        expect(balances == [0] * AT_ONCE_HTTP, "wrong balances")
        return f"{AT_ONCE_HTTP} calls at once"

    def filters():
        deadline = time.monotonic() + ATTEMPT_S
        blocks, logs, pending = w3.eth.filter("latest"), w3.eth.filter({"address": EMITTER}), w3.eth.filter("pending")
        receipt = send(EMITTER)
        hash = text_of(receipt["transactionHash"])
        poll(blocks, text_of(receipt["blockHash"]), deadline)
        poll(pending, hash, deadline)
        expect(poll(logs, hash, deadline).count(hash) == 1, "the log came more than once")
        logs.get_all_entries()
        for it in (blocks, logs, pending):
            expect(w3.eth.uninstall_filter(it.filter_id), "not uninstalled")

    attempt("basics", "http", basics)
    attempt("accounts", "http", accounts)
    attempt("transaction", "http", sending)
    attempt("batch", "http", batch)
    attempt("at once", "http", at_once)
    attempt("filters", "http", filters)


def watch_http(w3):
    def start(feature, of, arguments):
        watched = Watched(feature, "http")

        def run(filter):
            while True:
                try:
                    watched.seen += [of(it) for it in filter.get_new_entries()]
                except Exception as error:
                    watched.errors.append(str(error))
                time.sleep(0.2)

        try:
            threading.Thread(target=run, args=(w3.eth.filter(arguments),), daemon=True).start()
        except Exception as error:
            watched.errors.append(str(error))
        return watched

    return [
        start("blocks", text_of, "latest"),
        start("logs", lambda it: text_of(it["transactionHash"]), {"address": EMITTER}),
        start("pending", text_of, "pending"),
    ]


# WebSocket, with the asynchronous interface.


async def attempt_ws(feature, run):
    try:
        tell(feature, "ws", "ok", await asyncio.wait_for(run(), ATTEMPT_S) or "")
    except Exception as error:
        tell(feature, "ws", "fails", repr(error))


async def ws_calls(w3):
    async def basics():
        height = await w3.eth.block_number
        expect(await w3.eth.chain_id == 31337 and await w3.eth.get_balance(ACCOUNT.address) > 0, "wrong answers")
        expect((await w3.eth.get_block(height))["number"] == height, "wrong answers")

    async def accounts():
        expect(await w3.eth.accounts == [], "not []")

    async def send(to):
        raw = transaction((await w3.eth.get_transaction_count(ACCOUNT.address), await w3.eth.gas_price), to)
        return await w3.eth.wait_for_transaction_receipt(await w3.eth.send_raw_transaction(raw), timeout=30)

    async def sending():
        expect((await send(ACCOUNT.address))["status"] == 1, "the transaction failed")

    async def batch():
        async with w3.batch_requests() as requests:
            for n in range(BATCH):
                requests.add(w3.eth.get_balance(address_of(n + 1)))
            expect(list(await requests.async_execute()) == [0] * BATCH, "calls are missing")
        return f"{BATCH} calls in one batch"

    async def at_once():
        balances = await asyncio.gather(*(w3.eth.get_balance(address_of(n + 1)) for n in range(AT_ONCE_WS)))
        expect(list(balances) == [0] * AT_ONCE_WS, "wrong balances")
        return f"{AT_ONCE_WS} calls at once"

    async def filters():
        async def ask(method, params):
            answer = await w3.provider.make_request(method, params)
            expect("result" in answer, str(answer.get("error")))
            return answer["result"]

        async def changes(filter, wanted, of):
            seen = []
            while wanted not in seen:
                seen += [of(it) for it in await ask("eth_getFilterChanges", [filter])]
                await asyncio.sleep(0.1)
            return seen

        blocks, logs = await ask("eth_newBlockFilter", []), await ask("eth_newFilter", [{"address": EMITTER}])
        pending = await ask("eth_newPendingTransactionFilter", [])
        receipt = await send(EMITTER)
        hash = text_of(receipt["transactionHash"])
        await changes(blocks, text_of(receipt["blockHash"]), str)
        await changes(pending, hash, str)
        expect((await changes(logs, hash, lambda it: it["transactionHash"])).count(hash) == 1, "the log came more than once")
        for it in (blocks, logs, pending):
            expect(await ask("eth_uninstallFilter", [it]), "not uninstalled")
        return "raw calls: web3.py has no filters on a socket"

    await attempt_ws("basics", basics)
    await attempt_ws("accounts", accounts)
    await attempt_ws("transaction", sending)
    await attempt_ws("batch", batch)
    await attempt_ws("at once", at_once)
    await attempt_ws("filters", filters)


async def watch_ws(w3):
    kinds = {
        "blocks": (("newHeads",), lambda it: it["number"]),
        "logs": (("logs", {"address": EMITTER}), lambda it: text_of(it["transactionHash"])),
        "pending": (("newPendingTransactions",), lambda it: text_of(it)),
    }
    watched, by_id = [], {}
    for feature, (arguments, of) in kinds.items():
        one = Watched(feature, "ws")
        watched.append(one)
        try:
            by_id[await asyncio.wait_for(w3.eth.subscribe(*arguments), ATTEMPT_S)] = (one, of)
        except Exception as error:
            one.errors.append(repr(error))

    async def listen():
        try:
            async for message in w3.socket.process_subscriptions():
                one, of = by_id[message["subscription"]]
                one.seen.append(of(message["result"]))
        except Exception as error:
            for one in watched:
                one.errors.append(repr(error))

    listening = asyncio.create_task(listen())
    return watched, listening


async def judge_one(watched, expected):
    numbers, hashes = [it["number"] for it in expected["blocks"]], [it["hash"] for it in expected["blocks"]]
    isBlocks = watched.feature == "blocks"
    wanted = (hashes if watched.seen and isinstance(watched.seen[0], str) else numbers) if isBlocks else expected["transactions"]
    known = set(numbers + hashes) if isBlocks else set(wanted)
    deadline = time.monotonic() + ATTEMPT_S
    got = [it for it in watched.seen if it in known]
    while len(got) < len(wanted) and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
        got = [it for it in watched.seen if it in known]
    if isBlocks and got and isinstance(got[0], str):
        wanted = hashes
    missing, repeated = len([it for it in wanted if it not in got]), len(got) - len(set(got))
    problems = [] if missing == 0 else [f"{missing} of {len(wanted)} missing"]
    problems += [] if repeated == 0 else [f"{repeated} repeated"]
    if watched.feature != "pending" and [it for it in wanted if it in got] != list(dict.fromkeys(got)):
        problems.append("out of order")
    tell(watched.feature, watched.wire, "fails" if problems else "ok", "; ".join(problems + (watched.errors[:1] if problems else [])))


# Rounds, as rounds.ts has them. A client here is a set of functions that may be awaited on both wires.

RECEIPT_S = 10
ASK_S = 15
MAX_LOST = 10
LEAST_GAS = 25_000
NONCE_WORDS = ("nonce too low", "nonce too high", "nonce gap")


class Rounds:
    def __init__(self, w3, task, wrap):
        self.eth, self.task, self.wrap = w3.eth, task, wrap
        self.account = Account.from_key(task["key"])
        self.wrong, self.first_error = {}, None
        self.sent = self.counted = self.height = self.lost = 0
        self.contract, self.head_check = None, None

    def note(self, kind, count=1):
        self.wrong[kind] = self.wrong.get(kind, 0) + count

    def failed(self, kind, error):
        self.first_error = self.first_error or repr(error)[:80]
        self.note(kind)

    def ask(self, function, *arguments, **named):
        return asyncio.wait_for(self.wrap(function, *arguments, **named), ASK_S)

    async def check(self, kind, holds):
        try:
            if not await holds:
                self.note(kind)
        except Exception as error:
            self.failed(f"{kind}: error", error)

    def nonce(self, tag):
        return self.ask(self.eth.get_transaction_count, self.account.address, tag)

    async def is_nonce(self, tag):
        return await self.nonce(tag) == self.sent

    async def sign_and_send(self, what, nonce):
        fields = {"from": self.account.address, "chainId": 31337, "value": 0, "nonce": nonce, **what}
        price = await self.ask(lambda: self.eth.gas_price)
        gas = await self.ask(self.eth.estimate_gas, {"from": self.account.address, **what})
        fields |= {"gas": gas, "maxFeePerGas": price * 2, "maxPriorityFeePerGas": 1_000_000_000}
        return await self.ask(self.eth.send_raw_transaction, self.account.sign_transaction(fields).raw_transaction)

    async def is_known(self, hash):
        try:
            await self.ask(self.eth.get_transaction, hash)
            return True
        except TransactionNotFound:
            return False

    async def transact(self, what):
        nonce = self.sent
        try:
            nonce = await self.nonce("pending")
            if nonce != self.sent:
                self.note("pending nonce")
        except Exception as error:
            self.failed("pending nonce: error", error)
        await self.check("latest nonce", self.is_nonce("latest"))
        try:
            hash = await self.sign_and_send(what, nonce)
        except Exception as error:
            self.failed("nonce error" if any(it in str(error) for it in NONCE_WORDS) else "not sent", error)
            return await self.recover(what)
        await self.check("transaction not found", self.is_known(hash))
        try:
            receipt = await self.ask(self.eth.wait_for_transaction_receipt, hash, timeout=RECEIPT_S)
        except Exception as error:
            self.failed("no receipt", error)
            self.lost += 1
            return await self.recover(what)
        self.sent += 1
        if receipt["status"] != 1:
            self.note("transaction reverted")
        return receipt

    async def recover(self, what):
        deadline = time.monotonic() + RECEIPT_S
        while time.monotonic() < deadline:
            receipt, nonce = None, 0
            try:
                hash = await self.sign_and_send(what, self.sent)
                receipt = await self.ask(self.eth.wait_for_transaction_receipt, hash, timeout=RECEIPT_S)
            except Exception:
                pass
            try:
                nonce = await self.nonce("latest")
            except Exception:
                pass
            if receipt is not None or nonce > self.sent:
                self.sent += 1
                self.counted += 1 if receipt is None and "to" in what else 0
                return receipt
            await asyncio.sleep(0.2)
        return None

    async def is_height(self, at_least):
        height = await self.ask(lambda: self.eth.block_number)
        if height < self.height:
            self.note("block number went back")
        self.height = max(self.height, height)
        return height >= at_least

    async def is_block(self, at, hash):
        try:
            return text_of((await self.ask(self.eth.get_block, at))["hash"]) == hash
        except BlockNotFound:
            return False

    async def is_count(self):
        data = await self.ask(self.eth.call, {"to": self.contract})
        return len(data) > 0 and int.from_bytes(data, "big") == self.counted

    async def has_code(self):
        return len(await self.ask(self.eth.get_code, self.contract)) > 0

    async def has_logs(self, first, last):
        wanted = {"address": self.contract, "fromBlock": first, "toBlock": last}
        return len(await self.ask(self.eth.get_logs, wanted)) == min(1, self.counted)

    async def is_estimated(self):
        wanted = {"from": self.account.address, "to": self.contract, "data": "0x01"}
        return await self.ask(self.eth.estimate_gas, wanted) > LEAST_GAS

    async def read_after(self, receipt):
        number, hash = receipt["blockNumber"], text_of(receipt["blockHash"])
        await asyncio.gather(
            self.check("block number", self.is_height(number)),
            self.check("block by number", self.is_block(number, hash)),
            self.check("block by hash", self.is_block(hash, hash)),
            self.check("count", self.is_count()),
            self.check("no code", self.has_code()),
            self.check("latest nonce", self.is_nonce("latest")),
            self.check("pending nonce", self.is_nonce("pending")),
            self.check("logs of block", self.has_logs(number, number)),
            self.check("logs to latest", self.has_logs(number, "latest")),
            self.check("estimate", self.is_estimated()),
        )

    async def has_height(self, number):
        return await self.ask(lambda: self.eth.block_number) >= number

    async def read_head(self, head):
        number, hash = head["number"], text_of(head["hash"])
        await self.check("head: block number", self.has_height(number))
        await self.check("head: block", self.is_block(hash, hash))

    async def listen(self, w3):
        try:
            async for message in w3.socket.process_subscriptions():
                # One head at a time is looked into; those that come meanwhile are not.
                if self.head_check is None or self.head_check.done():
                    self.head_check = asyncio.create_task(self.read_head(message["result"]))
        except Exception as error:
            self.failed("head: error", error)

    async def run(self):
        deployed = await self.transact({"data": self.task["bytecode"]})
        done = 0
        if deployed is not None:
            self.contract = deployed["contractAddress"]
            await self.read_after(deployed)
        while deployed is not None and done < self.task["count"] and self.lost < MAX_LOST:
            receipt = await self.transact({"to": self.contract, "data": "0x" + format(done + 1, "064x")})
            if receipt is None:
                self.lost += 1
            else:
                self.counted += receipt["status"]
                await self.read_after(receipt)
            done += 1
        if done < self.task["count"]:
            self.note("rounds left out", self.task["count"] - done)
        if self.head_check is not None:
            await self.head_check
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.wrong.items(), key=lambda it: -it[1]))
        example = f" ({self.first_error})" if self.first_error else ""
        status = "fails" if self.wrong else "ok"
        tell(self.task["feature"], self.task["wire"], status, f"{done} rounds" + (f": {kinds}{example}" if kinds else ""), 500)


async def awaited(function, *arguments, **named):
    return await function(*arguments, **named)


async def rounds_of(task):
    if task["wire"] == "http":
        return await Rounds(Web3(HTTPProvider(task["url"])), task, asyncio.to_thread).run()
    async with AsyncWeb3(WebSocketProvider(task["url"])) as w3:
        rounds = Rounds(w3, task, awaited)
        await w3.eth.subscribe("newHeads")
        listening = asyncio.create_task(rounds.listen(w3))
        await rounds.run()
        listening.cancel()


async def main():
    if TASK["rounds"]:
        for result in await asyncio.gather(*map(rounds_of, TASK["rounds"]), return_exceptions=True):
            if result is not None:
                print(repr(result), file=sys.stderr)
        sys.stdout.flush()
        os._exit(0)
    if not TASK["failover"]:
        http_calls(Web3(HTTPProvider(TASK["http"])))
        async with AsyncWeb3(WebSocketProvider(TASK["ws"])) as ws:
            await ws_calls(ws)
    async with AsyncWeb3(WebSocketProvider(TASK["watchWs"])) as ws:
        watched, listening = await watch_ws(ws)
        watched = watch_http(Web3(HTTPProvider(TASK["watchHttp"]))) + watched
        print("READY", flush=True)
        line = await asyncio.to_thread(sys.stdin.readline)
        expected = json.loads(line[len("CHECK ") :])
        await asyncio.gather(*(judge_one(it, expected) for it in watched))
        listening.cancel()
        # Closing the socket raises whatever error some call got before; those have been told.
        sys.stdout.flush()
        os._exit(0)


asyncio.run(main())
