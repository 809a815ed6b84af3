import { expect, test } from 'vitest'
import { firstLoad, type MeasuredLoad } from '../../../gpu/residency/first-load.ts'

const GB = 1e9
const load = (gigabytes: number, seconds: number, engine = 'llama-server', disk = 1): MeasuredLoad => ({
  bytes: gigabytes * GB,
  loadMs: seconds * 1_000,
  engine,
  disk,
})

test.each<[rule: string, seen: MeasuredLoad[], gigabytes: number, seconds: number | null, isLikely: boolean]>([
  ['nothing was loaded here', [], 9, null, false],
  ['one as large took 2 s', [load(9, 2)], 9, 2, true],
  ['one half as large: the start is not doubled', [load(9, 11)], 18, 20, true],
  ['a small one tells the start of the engine, and nothing about the disk', [load(0.1, 6)], 10.1, 16, false],
  ['a small and a large one tell both', [load(0.1, 6), load(10.1, 26)], 20.1, 46, true],
  ['one slow load changes little', [load(9, 2), load(9, 2), load(9, 60)], 9, 2, true],
  ['sizes that hardly matter: nearly all is the start', [load(2, 30), load(8, 29), load(16, 31)], 40, 32.7, false],
  ['its kind of engine counts, not a faster one', [load(9, 2, 'gguf'), load(9, 60)], 9, 60, true],
  ['its disk counts, not a faster one', [load(9, 2, 'llama-server', 2), load(9, 62)], 9, 62, true],
  ['no engine of its kind, but its disk', [load(9, 11, 'vllm'), load(9, 60, 'vllm', 2)], 9, 11, false],
  ['only another disk', [load(9, 11, 'llama-server', 2)], 9, 11, false],
])('%s', (_rule, seen, gigabytes, seconds, isLikely) => {
  const wanted = { bytes: gigabytes * GB, engine: 'llama-server', disk: 1 }
  const estimate = firstLoad(wanted, seen)
  if (seconds === null) return expect(estimate).toBeNull()
  expect(estimate!.ms / 1_000).toBeCloseTo(seconds, 1)
  expect(estimate!.isLikely).toBe(isLikely)
})
