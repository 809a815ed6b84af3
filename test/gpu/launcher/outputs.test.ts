import { expect, test } from 'vitest'
import type { EngineLine } from '../../../core/models/engine-output.ts'
import { openOutputs } from '../../../gpu/launcher/outputs.ts'

const said = (lines: EngineLine[]) => lines.map(({ modelId, engineId, text }) => `${modelId} ${engineId} ${text}`)

test('output is kept for each launch and sent to subscribers', () => {
  const outputs = openOutputs()
  const heard: EngineLine[] = []
  const stop = outputs.follow(line => heard.push(line))
  const one = outputs.open({ launchId: 'wkr_1-1', modelId: 'a', secrets: ['password1'] })
  const other = outputs.open({ launchId: 'wkr_2-1', modelId: 'b', secrets: [] })
  one.push(Buffer.from('loading with password1\n'))
  other.push(Buffer.from('hello\n'))
  stop()
  one.push(Buffer.from('ready\n'))
  expect(said(heard)).toEqual(['a wkr_1 loading with [redacted]', 'b wkr_2 hello'])
  expect(outputs.lines('wkr_1-1')).toEqual(['loading with [redacted]', 'ready'])
  expect(said(outputs.recent('a'))).toEqual(['a wkr_1 loading with [redacted]', 'a wkr_1 ready'])
  expect(outputs.recent()).toHaveLength(3)
  one.push(Buffer.from('first\nsecond\nthird\n'))
  expect(said(outputs.recent('a', 2))).toEqual(['a wkr_1 second', 'a wkr_1 third'])
  expect(outputs.recent(undefined, 4)).toHaveLength(4)
  expect(outputs.lines('unknown')).toEqual([])
})

test('of ended launches the last eight are kept, of running ones all', () => {
  const outputs = openOutputs()
  for (let at = 0; at < 20; at++) {
    outputs.open({ launchId: `wkr_${at}-1`, modelId: 'a', secrets: [] }).push(Buffer.from(`line ${at}\n`))
    if (at > 0) outputs.ended(`wkr_${at}-1`)
  }
  expect(outputs.recent('a').map(({ text }) => text)).toEqual(
    [0, 12, 13, 14, 15, 16, 17, 18, 19].map(at => `line ${at}`),
  )
})
