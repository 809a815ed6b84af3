import { chmodSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import sharp from 'sharp'
import type { Lease } from '../../../core/models/fleet.ts'
import { Model } from '../../../core/models/model.ts'
import { operationOf } from '../../../core/schemas/task.ts'
import type { GenerationCall } from '../../../core/tasks/protocols/generation-call.ts'
import { generationProtocol } from '../../../core/tasks/protocols/protocols.ts'
import { presetOf } from '../../../gpu/presets/presets.ts'
import { engineInputs } from '../../core/tasks/protocols/_inputs.ts'
import { temporary } from './_launch.ts'

/** Puts the program of the Python worker into a folder, with a model that returns the image that it gets. */
export function installWorker(bin: string): void {
  const script = join(import.meta.dirname, '../fixtures/worker.py')
  chmodSync(script, 0o755)
  symlinkSync(script, join(bin, 'infer-worker'))
}

/** Makes an image of 32 × 16 pixels. */
export const makeImage = (path: string) =>
  sharp({ create: { width: 32, height: 16, channels: 3, background: 'red' } })
    .png()
    .toFile(path)

/** Makes a folder with that program and an image, and a model of the Python worker that runs on a card of a pool. */
export async function workerOf(pool: string): Promise<{ bin: string; image: string; model: Model }> {
  const bin = temporary()
  installWorker(bin)
  const image = join(bin, 'image.png')
  await makeImage(image)
  const tasks = ['slug/image-to-image']
  const model = { id: 'python', engine: 'python', source: image, tasks, devices: 1, memory: '16MiB', pools: [pool] }
  return { bin, image, model: Model.parse(model) }
}

/** Lets an engine of the model edit an image, and resolves with the size of the result. */
export async function editedImage(
  fleet: { lease(model: Model, of: { waitMs: number }): Promise<Lease> },
  model: Model,
  image: string,
) {
  using lease = await fleet.lease(model, { waitMs: 60_000 })
  const task = 'slug/image-to-image'
  const route = presetOf(model).traits(model).routes[operationOf(task)]!
  const folder = temporary()
  const call: GenerationCall = { task, model: model.id, inputs: engineInputs({ width: 32, height: 16, image }), folder }
  const report = { progress() {}, log() {}, preview() {} }
  const signal = AbortSignal.timeout(30_000)
  const { files } = await generationProtocol(route).generate(lease, route, call, signal, report, () =>
    Promise.reject(new Error('There is nothing to download.')),
  )
  const [file] = files
  if (files.length !== 1 || file?.kind !== 'image') throw new Error(`It made ${JSON.stringify(files)}`)
  const { width, height } = await sharp(readFileSync(join(folder, file.name))).metadata()
  return { width, height }
}
