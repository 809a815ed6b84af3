import { expect, onTestFinished, test } from 'vitest'
import { assetPath } from '../../../../core/assets.ts'
import { Model } from '../../../../core/models/model.ts'
import { PoolSettings, type SshPool } from '../../../../core/models/pools.ts'
import { openSshLauncher } from '../../../../gpu/launcher/ssh/ssh.ts'
import { full } from '../../../_full.ts'
import { fleetOf, send } from '../../_fleet.ts'
import { backends, cacheWithShaders, driver, missing } from '../../_vulkan.ts'
import { temporary, until } from '../_launch.ts'
import { noSshServer, openBox } from './_box.ts'

/** The trial compiles the shaders on the processor, which takes 10 to 30 s. */
const absent = noSshServer() ?? (missing || (full ? undefined : 'in the whole suite only'))

test.skipIf(absent !== undefined)(
  `the built-in engine uses the GPU of a machine that is reached by ssh${absent ? ` (${absent})` : ''}`,
  { timeout: 300_000 },
  async () => {
    const box = await openBox(undefined, {
      INFER_BACKENDS_DIR: backends,
      INFER_CACHE_DIR: cacheWithShaders(temporary()),
      VK_DRIVER_FILES: driver,
      GGML_VK_VISIBLE_DEVICES: '0',
      OMP_WAIT_POLICY: 'PASSIVE',
    })
    onTestFinished(() => box.close())
    const { host, port, identity_file } = box.settings
    const settings = PoolSettings.parse({ kind: 'ssh', host, port, identity_file }) as SshPool
    const of = { id: 'far', engine: 'gguf', source: assetPath('models/tiny-chat.gguf'), concurrency: 1 }
    const model = Model.parse({ ...of, tasks: ['std/completion'], memory: '1100MiB', pools: ['box2'] })
    const { fleet } = await fleetOf([model], {
      pools: () => ({ box2: settings }),
      openPoolLauncher: options => openSshLauncher({ ...options, settings, ssh: box.ssh }),
    })
    await until(async () => (await fleet.plan(model)).devices.some(({ id }) => id === 'box2/gpu0'))
    using lease = await fleet.lease(model, { waitMs: 120_000 })
    const body = JSON.stringify({ model: 'far', prompt: 'Once', max_tokens: 4, temperature: 0 })
    const { text, failure } = await send(lease, '', { path: '/v1/completions', body }).answer
    expect(failure).toBeUndefined()
    expect(JSON.parse(text)).toMatchObject({ choices: [{ text: expect.any(String) as string }] })
    const [engine] = fleet.snapshot().residents
    expect(engine).toMatchObject({ pool: 'box2', devices: ['box2/gpu0'] })
    expect(engine!.command.join(' ')).toContain('--gpu vulkan')
  },
)
