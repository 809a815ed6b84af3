import { expect, test } from 'vitest'
import { openLoadHistory } from '../../gpu/load-history.ts'

type Began = Parameters<ReturnType<typeof openLoadHistory>['began']>[0]
const resident = (engineId: string, modelId = 'm') =>
  ({ engineId, serves: { model: { id: modelId } }, devices: ['cuda:0'], bytes: 100 }) as unknown as Began

test('a load that succeeds, and ends with a reason', () => {
  let now = 1_000
  const history = openLoadHistory(() => now)
  history.began(resident('wkr_1'))
  expect(history.of('m')).toEqual([
    {
      engineId: 'wkr_1',
      devices: ['cuda:0'],
      bytes: 100,
      state: 'loading',
      startedAt: 1_000,
      loadMs: null,
      endedAt: null,
      reason: null,
    },
  ])
  history.ready('wkr_1', 250)
  expect(history.of('m')[0]).toMatchObject({ state: 'ready', loadMs: 250, endedAt: null })
  now = 9_000
  history.ended('wkr_1', 'idle')
  expect(history.of('m')[0]).toMatchObject({ state: 'ended', loadMs: 250, endedAt: 9_000, reason: 'idle' })
})

test('a load that fails stays failed when its process ends', () => {
  const history = openLoadHistory(() => 5)
  history.began(resident('wkr_1'))
  history.failed('wkr_1', 'out of memory')
  history.ended('wkr_1', 'exit code 1')
  expect(history.of('m')[0]).toMatchObject({ state: 'failed', loadMs: null, endedAt: 5, reason: 'out of memory' })
})

test('the newest come first, and there are 20 of a model and 500 models at most', () => {
  const history = openLoadHistory(() => 0)
  for (let at = 0; at < 30; at++) history.began(resident(`wkr_${at}`))
  expect(history.of('m').map(({ engineId }) => engineId)).toEqual(
    Array.from({ length: 20 }, (_, at) => `wkr_${29 - at}`),
  )
  for (let at = 0; at < 500; at++) history.began(resident(`wkr_x${at}`, `model-${at}`))
  expect(history.of('m')).toEqual([])
  expect(history.of('model-499')).toHaveLength(1)
})
