import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, expect, test } from 'vitest'
import { Model } from '../../../../core/models/model.ts'
import { PoolSettings, type SshPool } from '../../../../core/models/pools.ts'
import { operationOf } from '../../../../core/schemas/task.ts'
import type { EngineInputs, GenerationCall } from '../../../../core/tasks/protocols/generation-call.ts'
import { generationProtocol } from '../../../../core/tasks/protocols/protocols.ts'
import { openSshLauncher } from '../../../../gpu/launcher/ssh/ssh.ts'
import { presetOf } from '../../../../gpu/presets/presets.ts'
import { fleetOf } from '../../_fleet.ts'
import { temporary } from '../_launch.ts'
import { noSshServer, openBox } from './_box.ts'

/** Engines of images on a machine without a shared folder: what they get and what they make goes over HTTP. */
const missing = noSshServer()
const bin = mkdtempSync(join(tmpdir(), 'infer-bin-'))
const fixture = (path: string) => join(import.meta.dirname, path)
const program = join(bin, 'sd-server')
const image = join(bin, 'image.png')
const box = missing === undefined ? await openBox(undefined, { PATH: `${bin}:${process.env.PATH}` }) : undefined
afterAll(async () => {
  await box?.close()
  rmSync(bin, { recursive: true, force: true })
})

const inputs: EngineInputs = {
  prompt: 'A cat',
  negative_prompt: null,
  seed: 1,
  width: 64,
  height: 64,
  num_images: 1,
  num_frames: 1,
  fps: 8,
  num_inference_steps: 2,
  guidance_scale: 1,
  strength: 0.5,
  output_format: 'png',
  image: null,
  mask: null,
  video: null,
  audio: null,
  extra: {},
}

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
})

test.skipIf(missing !== undefined).each(['sd-server', 'comfyui'] as const)(
  '%s edits an image on a machine that is reached by ssh',
  { timeout: 90_000 },
  async engine => {
    await sharp({ create: { width: 32, height: 16, channels: 3, background: 'red' } })
      .png()
      .toFile(image)
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
    using lease = await fleet.lease(model, { waitMs: 60_000 })
    expect(fleet.snapshot().residents).toMatchObject([{ pool: 'box2', state: 'ready' }])
    const task = 'slug/image-to-image'
    const route = presetOf(model).traits(model).routes[operationOf(task)]!
    const folder = temporary()
    const call: GenerationCall = { task, model: model.id, inputs: { ...inputs, image }, folder }
    const report = { progress() {}, log() {}, preview() {} }
    const { files } = await generationProtocol(route).generate(
      lease,
      route,
      call,
      AbortSignal.timeout(30_000),
      report,
      () => Promise.reject(new Error('There is nothing to download.')),
    )
    expect(files).toMatchObject([{ kind: 'image' }])
    expect((await sharp(readFileSync(join(folder, files[0]!.name))).metadata()).width).toBe(32)
  },
)
