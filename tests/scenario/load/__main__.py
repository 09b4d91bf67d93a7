"""python -m scenario.load --url URL --mix JSON --rate N --seconds S --idle S --out requests.csv

Sends the mix at a steady rate, stays silent for the idle tail, writes the counts. SIGTERM ends it early, with what it has.
The mix is a JSON list of the fields of generator.Call, or @FILE.
"""
import argparse
import asyncio
import json
import signal

from scenario.load.generator import Call, Generator


def read_mix(text):
    if text.startswith("@"):
        with open(text[1:], encoding="utf-8") as f:
            text = f.read()
    return [Call(**fields) for fields in json.loads(text)]


async def main(arguments):
    generator = Generator(arguments.url, read_mix(arguments.mix), arguments.rate, arguments.seed)
    work = asyncio.ensure_future(generator.run(arguments.seconds))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
    try:
        await work
        await asyncio.sleep(arguments.idle)
    except asyncio.CancelledError:
        pass
    generator.record.write(arguments.out)
    print(json.dumps({"outcomes": generator.record.totals(), "shed": generator.shed}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--mix", required=True)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--idle", type=float, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", required=True)
    asyncio.run(main(parser.parse_args()))
