import { expect, test } from 'vitest'
import { pauseAdvice } from '../../../gpu/placement/pause-advice.ts'
import { GiB } from '../_models.ts'

const device = (id: string, of: object = {}) => ({
  id,
  capacityBytes: 8 * GiB,
  fault: null,
  paused: null,
  neededBytes: 0,
  ...of,
})
const awaited = (id: string) => device(id, { paused: `${id} is paused.`, neededBytes: GiB })
const smaller = { context: 8192, parallel: 2 }
const resume = 'To load it now, use gpu0 again with: infer gpu resume --device gpu0.'

test.each([
  ['nothing is paused', [device('gpu0', { neededBytes: GiB })], null, null],
  [
    'it waits for none that is paused',
    [device('gpu0', { paused: 'x' }), device('gpu1', { neededBytes: GiB })],
    null,
    null,
  ],
  ['every device is paused', [awaited('gpu0'), device('gpu1', { paused: 'x' })], null, resume],
  ['the other device has a fault', [awaited('gpu0'), device('gpu1', { fault: 'x' })], null, resume],
  [
    'it needs two that are paused',
    [awaited('gpu0'), awaited('gpu1')],
    null,
    'To load it now, use them again with: infer gpu resume --device gpu0 --device gpu1.',
  ],
  [
    'it would fit on a smaller one in another layout',
    [awaited('gpu0'), device('gpu1')],
    smaller,
    `${resume} Or set context_length: 8192 and concurrency: 2, with which it fits on gpu1.`,
  ],
  [
    'it fits on no other',
    [awaited('gpu0'), device('gpu1'), device('gpu2')],
    null,
    `${resume} It does not fit on gpu1 and gpu2, with 16.0 GiB for models: a smaller model or quantization would.`,
  ],
] as const)('%s', async (_, devices, layout, expected) => {
  expect(await pauseAdvice(devices, () => Promise.resolve(layout))).toBe(expected)
})
