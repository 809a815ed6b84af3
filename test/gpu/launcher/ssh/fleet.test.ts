import { afterAll, describe, expect, test } from 'vitest'
import { PoolSettings } from '../../../../core/models/pools.ts'
import { openSshLauncher } from '../../../../gpu/launcher/ssh/ssh.ts'
import type { OpenPoolLauncher } from '../../../../gpu/pool-launches.ts'
import { chat, fake, fleetOf, send } from '../../_fleet.ts'
import { until } from '../_launch.ts'
import { noSshServer, openBox } from './_box.ts'

const missing = noSshServer()
const box = missing === undefined ? await openBox() : undefined
afterAll(() => box?.close())

/** A server with the pool `box2`, whose one model runs only there. */
async function withBox() {
  const model = fake('far', [], { pools: ['box2'] })
  const { host, port, identity_file } = box!.settings
  const pools = () => ({ box2: PoolSettings.parse({ kind: 'ssh', host, port, identity_file }) })
  const openPoolLauncher: OpenPoolLauncher = async ({ settings, ...options }) => {
    if (settings.kind !== 'ssh') throw new Error('It is another kind.')
    return await openSshLauncher({ ...options, settings, ssh: box!.ssh })
  }
  return { model, ...(await fleetOf([model], { pools, openPoolLauncher })) }
}

describe.skipIf(missing !== undefined)(
  `a model on a machine that is reached by ssh${missing ? ` (${missing})` : ''}`,
  () => {
    test('is served while its connection is cut and opened again, by the same engine', {
      timeout: 90_000,
    }, async () => {
      const { fleet, model, log } = await withBox()
      expect((await chat(fleet, model)).text).toContain('Hello')
      const [engine] = fleet.snapshot().residents
      expect(engine).toMatchObject({ pool: 'box2', state: 'ready', devices: ['box2/cpu'] })

      using lease = await fleet.lease(model, { waitMs: 30_000 })
      const streamed = send(lease, 'mode:stream,tokens=100000,rate=100', { stream: true })
      await streamed.begun
      await box!.cut()
      const calls = Array.from({ length: 5 }, () => chat(fleet, model))
      expect((await streamed.answer).failure).toMatchObject({ code: 'worker_error' })
      for (const answer of await Promise.all(calls))
        expect([answer.failure, answer.text]).toEqual([undefined, expect.stringContaining('Hello')])

      await until(() => log.lines.filter(line => line.includes('Connected to the machine of the pool')).length === 2)
      expect((await chat(fleet, model)).text).toContain('Hello')
      expect(fleet.snapshot().residents.map(({ engineId }) => engineId)).toEqual([engine!.engineId])
    })
  },
)
