import { expect, test } from 'vitest'
import { pipeLine, progressLine, type ReportedProgress } from '../../../cli/jobs/display.ts'
import { type JobSnapshot, unknownSnapshot } from '../../../cli/jobs/follow.ts'

const snapshot = (more: Partial<JobSnapshot>): JobSnapshot => ({ ...unknownSnapshot, ...more })
const waitingFor = (reason: string, detail = '') => ({ reason, detail })

test.each<[more: Partial<JobSnapshot>, line: string]>([
  [{}, 'cat  ──────────────────────── waiting  5 s'],
  [{ queuePosition: 0 }, 'cat  ──────────────────────── waiting  next in the queue  5 s'],
  [
    { queuePosition: 3, etaSeconds: 130, waitingFor: waitingFor('model_loading') },
    'cat  ──────────────────────── waiting  3 ahead of it in the queue  about 2 min left  its model is loading  5 s',
  ],
  [
    { queuePosition: 0, waitingFor: waitingFor('queue', 'It is next.') },
    'cat  ──────────────────────── waiting  It is next.  5 s',
  ],
  [{ waitingFor: waitingFor('something_new') }, 'cat  ──────────────────────── waiting  something_new  5 s'],
  [{ waitingFor: waitingFor('queue', 'a\u001b[2Jb') }, 'cat  ──────────────────────── waiting  a[2Jb  5 s'],
  [{ status: 'processing' }, 'cat  ──────────────────────── working  5 s'],
  [{ status: 'processing', progress: 0.5, etaSeconds: 10 }, 'cat  ━━━━━━━━━━━━────────────  50 %  about 8 s left  5 s'],
  [{ status: 'processing', progress: 0.999, etaSeconds: 1 }, 'cat  ━━━━━━━━━━━━━━━━━━━━━━━─  99 %  5 s'],
  [{ status: 'completed', progress: 1 }, 'cat  ━━━━━━━━━━━━━━━━━━━━━━━━ 100 %'],
  [{ status: 'failed' }, 'cat  ──────────────────────── failed'],
])('%j', (more, line) => expect(progressLine('cat', snapshot(more), 2_000, 5_000, 120)).toBe(line))

test.each([20, 30, 50])('no line is wider than the terminal: %i', width => {
  const busy = snapshot({ queuePosition: 30, etaSeconds: 400, waitingFor: waitingFor('queue', 'x'.repeat(200)) })
  expect(progressLine('a long name of a model', busy, 0, 0, width).length).toBeLessThanOrEqual(width)
})

/** The lines that a pipe gets for these snapshots, `everyMs` apart. */
function told(moments: Partial<JobSnapshot>[], everyMs: number): string[] {
  const lines: string[] = []
  let reported: ReportedProgress | undefined
  for (const [at, more] of moments.entries()) {
    const line = pipeLine(snapshot(more), reported, at * everyMs)
    if (!line) continue
    lines.push(line.text)
    reported = line.reported
  }
  return lines
}
const steps = (count: number) =>
  Array.from({ length: count + 1 }, (_, at) => ({ status: 'processing', progress: at / count }))

test('a pipe gets a line every 10 %', () => {
  expect(told([...steps(100), { status: 'completed' }], 1_000)).toEqual([
    'working',
    ...[10, 20, 30, 40, 50, 60, 70, 80, 90].map(percent => `${percent} %`),
    'completed',
  ])
})

test('a pipe gets fewer lines when progress is fast', () => {
  const lines = told([...steps(100), { status: 'completed' }], 25)
  expect(lines).toEqual(['working', '40 %', '80 %', 'completed'])
})

test('in the queue a pipe gets every change of the reason, and the position every ten seconds', () => {
  const queue = (queuePosition: number, reason: string) => ({ queuePosition, waitingFor: waitingFor(reason) })
  const places = [9, 8, 7, 6, 5, 4, 4, 4].map(place => queue(place, 'queue'))
  expect(told([...places, queue(4, 'no_capacity'), { status: 'cancelled' }], 4_000)).toEqual([
    'waiting, 9 ahead of it in the queue, other jobs come first',
    'waiting, 6 ahead of it in the queue, other jobs come first',
    'waiting, 4 ahead of it in the queue, other jobs come first',
    'waiting, 4 ahead of it in the queue, no device has enough free memory',
    'cancelled',
  ])
})

test('a reason that is a whole sentence follows a full stop', () => {
  const waiting = { reason: 'model_loading', detail: "The model 'm' is being loaded." }
  expect(told([{ queuePosition: 2, waitingFor: waiting }], 1_000)).toEqual([
    "waiting, 2 ahead of it in the queue. The model 'm' is being loaded.",
  ])
})
