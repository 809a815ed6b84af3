import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

/** Bars of time hold on a card only. Here measurements are made up and said to be of one. */
const folder = mkdtempSync(join(tmpdir(), 'infer-bars-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const context = (device: string) => `
import sys
sys.path.insert(0, ${JSON.stringify(resolve('test/gpu/checks'))})
sys.dont_write_bytecode = True
from contextlib import ExitStack
from context import FULL, Context
from report import Budget, Report
report = Report(${JSON.stringify(join(folder, 'report.json'))}, {})
context = Context(report=report, nvml=None, infer="infer", device="${device}", scale=FULL, sources="")
context.budget = Budget(1000)
`

/** Streams through infer whose gaps are so many milliseconds longer, and processor time of 10 s for them. */
const streams = (added: number, count = 64) => `
from once import Once
from parts import gateway
class Server:
    used = 0
    def cpu_seconds(self):
        self.used += 5
        return self.used
class Bench:
    context, server, record, load_seconds = context, Server(), "decoder.jsonl", 60
    started = Once("gateway.load", lambda: 1)
    def load(self, through, count, tokens, spread=0.0):
        gap = 0.020 + (${added} / 1000 if through else 0)
        seconds = tokens * gap
        return {"ttft": [gap] * count, "gaps": [gap] * count * (tokens - 1), "seconds": seconds, "tokens": count * tokens}
counts = iter([[], [{"compute": 1, "steps": 200}]])
gateway.read_record = lambda *_: next(counts)
gateway.check_streams(context, Bench(), ${count})
`

/** An engine with one slot that is idle for so many milliseconds between two requests. */
const queue = (idle: number) => `
from queue_idle import Queue
queue = Queue(context, None)
queue.started, queue.idle = (lambda: 1), (lambda run: [${idle} / 1000] * 200)
context.check("gateway.idle_between_jobs", lambda check: queue.check_idle(check, queue.run_jobs))
`

/** An engine that works on two requests of its one slot at once. */
const overlap = `
from queue_idle import Queue
from engines.record import Record
queue = Queue(context, None)
def run():
    for at in range(queue.count):
        Record(queue.record).add("work", began=at * 0.04, seconds=0.05)
    return 0
queue.started = lambda: 1
context.check("gateway.idle_between_jobs", lambda check: queue.check_idle(check, run))
`

/** Pictures that take 2 s bare, and so many seconds through infer. */
const worker = (through: number) => `
from parts import worker
class Server:
    def __init__(self, *_): pass
    def __enter__(self): return self
    def __exit__(self, *_): pass
    def load(self, model): pass
worker.InferServer = Server
worker.read_record = lambda *_: [{"seconds": 2, "digest": "x"}] * 8
pair = worker.Pair(context, None)
pair.started, pair.draw_bare, pair.draw_through = (lambda: 4), (lambda: {"seconds": 2, "digest": "x"}), (lambda _: ${through})
with ExitStack() as stack:
    context.check("worker.overhead", lambda check: pair.compare(check, stack))
`

const lines = (device: string, program: string) =>
  execFileSync('python3', ['-c', `${context(device)}${program}\ncontext.close()`], { encoding: 'utf8' })

describe('a bar of time', () => {
  test.each([
    ['gaps of 64 streams, at the bar', streams(4.9), /^gateway\.gap_p99\.64: ok, p99 \+4\.90 ms/m],
    [
      'gaps of 64 streams, above',
      streams(6),
      /^gateway\.gap_p99\.64: fail, p99 \+6\.00 ms .*; expected at most \+5 ms$/m,
    ],
    ['gaps of 256 streams have none', streams(6, 256), /^gateway\.gap_p99\.256: ok, p99 \+6\.00 ms/m],
    [
      'the other figures of streams',
      streams(5),
      /^gateway\.first_token\.64: ok, p50 \+5\.00 ms .*\ngateway\.gap.*\ngateway\.throughput\.64: ok, 0\.800 .*\ngateway\.cpu_per_token\.64: ok, 390\.6 µs/m,
    ],
    ['a queue that is idle for less', queue(4.9), /^gateway\.idle_between_jobs: ok, p50 4\.9 ms/m],
    [
      'a queue that is idle for more',
      queue(6),
      /^gateway\.idle_between_jobs: fail, p50 6 ms.*; expected a p50 of at most 5 ms$/m,
    ],
    [
      'two requests in one slot',
      overlap,
      /^gateway\.idle_between_jobs: fail, the engine of one slot worked on two requests at once$/m,
    ],
    ['overhead of a picture, at the bar', worker(2.19), /^worker\.overhead: ok, \+9\.5 %/m],
    ['overhead of a picture, above', worker(2.3), /^worker\.overhead: fail, \+15\.0 % .*; expected at most \+10%$/m],
  ])('%s', (_, program, line) => {
    expect(lines('cuda', program)).toMatch(line)
  })

  test('is not applied elsewhere, and the line says so', () => {
    expect(lines('fake', queue(60))).toMatch(
      /^gateway\.idle_between_jobs: ok, p50 60 ms.*; bar 'expected a p50 of at most 5 ms' not applied on fake$/m,
    )
  })
})
