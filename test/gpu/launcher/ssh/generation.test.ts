import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Model } from '../../../../core/models/model.ts'
import { PoolSettings, type SshPool } from '../../../../core/models/pools.ts'
import { openSshLauncher } from '../../../../gpu/launcher/ssh/ssh.ts'
import { fleetOf } from '../../_fleet.ts'
import { editedImage, installWorker, makeImage } from '../_generation.ts'
import { until } from '../_launch.ts'
import { noSshServer, openBox } from './_box.ts'

/** Engines of images on a machine without a shared folder: what they get and what they make goes over HTTP. */
const missing = noSshServer()
const bin = mkdtempSync(join(tmpdir(), 'infer-bin-'))
const fixture = (path: string) => join(import.meta.dirname, path)
const program = join(bin, 'sd-server')
const image = join(bin, 'image.png')
const box = missing === undefined ? await openBox(undefined, { PATH: `${bin}:${process.env.PATH}` }) : undefined
beforeAll(async () => {
  await makeImage(image)
  installWorker(bin)
})
afterAll(async () => {
  await box?.close()
  rmSync(bin, { recursive: true, force: true })
})

const graph = {
  3: { class_type: 'InferTestSampler', inputs: { text: '', seed: 0 } },
  9: { class_type: 'SaveImage', inputs: { images: ['3', 0], filename_prefix: 'ComfyUI' } },
  10: { class_type: 'LoadImage', inputs: { image: 'example.png' } },
}

const common = { devices: 'cpu', memory: '16MiB', stop_grace: '500ms', sandbox: 'none', pools: ['box2'] }
const models = () => ({
  'sd-server': { ...common, id: 'sd', engine: 'sd-server', source: image, args: ['--image', image] },
  comfyui: {
    ...common,
    id: 'graph',
    engine: 'comfyui',
    source: join(bin, 'graph.json'),
    command: [process.execPath, fixture('../../fixtures/comfyui.ts')],
    comfyui: { inputs: { prompt: '3.inputs.text', image: '10.inputs.image' }, outputs: ['9'] },
  },
  python: { ...common, id: 'python', engine: 'python', source: image },
  demo: { ...common, id: 'demo', engine: 'demo' },
})

test.skipIf(missing !== undefined).each(['sd-server', 'comfyui', 'python', 'demo'] as const)(
  '%s edits an image on a machine that is reached by ssh',
  { timeout: 90_000 },
  async engine => {
    writeFileSync(join(bin, 'graph.json'), JSON.stringify(graph))
    writeFileSync(
      program,
      `#!/bin/sh\nexec '${process.execPath}' '${fixture('../../../fixtures/sd-server.ts')}' "$@"\n`,
    )
    chmodSync(program, 0o755)
    const model = Model.parse({ ...models()[engine], tasks: ['slug/image-to-image'] })
    const { host, port, identity_file } = box!.settings
    const settings = PoolSettings.parse({ kind: 'ssh', host, port, identity_file }) as SshPool
    const { fleet } = await fleetOf([model], {
      pools: () => ({ box2: settings }),
      openPoolLauncher: options => openSshLauncher({ ...options, settings, ssh: box!.ssh }),
    })
    expect(await editedImage(fleet, model, image)).toEqual({ width: 32, height: 16 })
    expect(fleet.snapshot().residents).toMatchObject([{ pool: 'box2', state: 'ready' }])
    await until(() => leftCalls().length === 0)
  },
)

/** Files of calls that are left on the other machine. */
const leftCalls = () =>
  readdirSync(box!.cache, { recursive: true, encoding: 'utf8' }).filter(name => name.includes('call-'))
