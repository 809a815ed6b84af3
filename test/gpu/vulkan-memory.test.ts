import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { assetPath } from '../../core/assets.ts'
import { Model } from '../../core/models/model.ts'
import { probeMachine } from '../../gpu/probe-machine.ts'
import { fleetOf, send } from './_fleet.ts'
import { cacheWithShaders, driver, environment, missing } from './_vulkan.ts'
import { temporary } from './launcher/_launch.ts'

const MiB = 2 ** 20
const tokens = 32_768

/** The small chat model as if it were trained for a longer context: its cache is all that takes memory. */
function wideModel(folder: string): string {
  const bytes = readFileSync(assetPath('models/tiny-chat.gguf'))
  const key = 'llama.context_length'
  bytes.writeUInt32LE(tokens, bytes.indexOf(key) + key.length + 4)
  const path = join(folder, 'wide.gguf')
  writeFileSync(path, bytes)
  return path
}

describe.skipIf(missing !== '')(
  `memory of a Vulkan device that is not there ${missing && `(skipped: ${missing})`}`,
  { timeout: 600_000 },
  () => {
    // The device has 2 GiB of main memory, and the processes of engines get less than that.
    test('a load is named as out of memory, tried once with less, and leaves nothing', async () => {
      const dataDir = temporary()
      const limit = join(dataDir, 'limit')
      const setLimit = (bytes: number | 'unlimited') => writeFileSync(limit, String(bytes))
      setLimit('unlimited')
      const host = { ...environment(driver, '0'), INFER_CACHE_DIR: cacheWithShaders(dataDir) }
      const source = wideModel(dataDir)
      const of = (id: string, more: object) =>
        Model.parse({ id, engine: 'gguf', source, tasks: ['std/completion'], ...more })
      const small = of('small', { context_length: 512, concurrency: 1 })
      const wide = of('wide', { concurrency: 128 })
      const fixed = of('fixed', { context_length: 4096, concurrency: 128, gpu_layers: 2 })
      const { wrapper: own, devices } = await probeMachine(dataDir, host)
      const limited = ['/bin/sh', '-c', `exec prlimit --data=$(cat ${limit}) -- "$@"`, 'limited']
      const wrapper = { ...own, prefix: [...own.prefix, ...limited] }
      const options = { dataDir, environment: host, wrapper, devices }
      const { fleet, log } = await fleetOf([small, wide, fixed], options)
      const starts = () =>
        log.lines.flatMap(line => /^warn An engine could not be started .*?"reason":"([^"]*)"/.exec(line)?.[1] ?? [])
      const placed = () => fleet.snapshot().residents.map(({ modelId, devices: on }) => [modelId, on.join()])

      /** Asks for a few tokens, for which shaders are compiled. */
      async function answers(model: Model) {
        using lease = await fleet.lease(model, { waitMs: 60_000 })
        const body = JSON.stringify({ model: model.id, prompt: 'Hello', max_tokens: 4 })
        const { failure, text } = await send(lease, '', { path: '/v1/completions', body }).answer
        expect(failure).toBeUndefined()
        expect((JSON.parse(text) as { choices: { text: string }[] }).choices[0]!.text).not.toBe('')
      }

      await answers(small)
      const { pid } = fleet.snapshot().residents[0]!
      const used = Number(/^VmData:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
      await fleet.unload('small')

      // The estimate has 256 MiB of cache; half of that can be had.
      setLimit(used + 230 * MiB)
      await fleet.load(wide)
      expect(starts()).toEqual(['Engine exited (1): out of memory.'])
      expect(placed()).toEqual([['wide', 'gpu0']])
      await answers(wide)
      await fleet.unload('wide')

      // What infer may not make smaller is tried once more at most, and refused with a sentence. It lacks 134 MiB.
      setLimit(used + 60 * MiB)
      await expect(fleet.load(fixed)).rejects.toMatchObject({
        code: 'no_capacity',
        message: expect.stringMatching(
          /^Model 'fixed' cannot be started: Engine exited \(1\): out of memory\. \d.* were free for it: reduce its context_length or concurrency, or use a smaller model\.$/,
        ) as string,
      })
      expect(starts().slice(1)).toEqual(Array(2).fill('Engine exited (1): out of memory.'))
      expect(placed()).toEqual([])
      expect(fleet.snapshot().devices[0]).toMatchObject({ id: 'gpu0', bookedBytes: 0, fault: null })
      await fleet.load(small)
      expect(placed()).toEqual([['small', 'gpu0']])
    })
  },
)
