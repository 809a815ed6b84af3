import type { Model } from '../../core/models/model.ts'
import { definePreset, ffmpegFor, needsSource, noKey, oneAtATime } from './preset.ts'
import { neededRelease, released, releasedInstallation, releasedProgram } from './released-program.ts'
import { routesOf } from './routes.ts'

/** Options in `args` that name the weights, so that `source` is not passed again. */
const weightOptions = ['-m', '--model', '--diffusion-model']
/** Options for separate text encoders: `source` then contains only the diffusion model. */
const encoderOptions = ['--clip_l', '--clip_g', '--t5xxl', '--llm', '--qwen2vl']

function weightsOf({ args, source = '' }: Pick<Model, 'args' | 'source'>): string[] {
  const has = (options: readonly string[]) => args.some(arg => options.includes(arg))
  if (has(weightOptions)) return []
  return [has(encoderOptions) ? '--diffusion-model' : '-m', source]
}

/**
 * The server of stable-diffusion.cpp, of its releases or installed by the operator. It opens its port when the model is loaded, works on one
 * job at a time, and cannot interrupt a job that runs. It prints the steps of a job and reports them nowhere else.
 */
export const sdServer = definePreset({
  name: 'sd-server',
  usesVulkan: true,
  takesThreads: true,
  ...released,
  installation: releasedInstallation('sd-server'),
  configurationFault: model =>
    needsSource(model, 'the file or folder of a model') ?? oneAtATime(model, 'processes one request'),
  // It writes AVI, which infer converts to MP4.
  programs: (model, task) => [neededRelease(model), ...ffmpegFor(task)],
  slots: 1,
  command: (model, { threads }) => [
    releasedProgram(model),
    weightsOf(model),
    ['--listen-ip', '127.0.0.1', '--listen-port', '{port}', '-t', String(threads)],
    model.args,
  ],
  key: noKey,
  // Not its capabilities, which builds without jobs lack.
  healthPath: () => '/v1/models',
  progress: {
    begins: /get_learned_condition completed|generating image: \d+\/\d+/,
    bar: /\| (?<step>\d+)\/(?<steps>\d+) - [\d.]+(?:it\/s|s\/it)/,
    ends: /sampling completed/,
  },
  abilities(model) {
    const routes = routesOf({ sdServer: 'all' })
    // A model that takes several input images edits them; any other model starts from its only input image.
    if ((model.input_images ?? 1) > 1) routes['edit-image'] = { ...routes['edit-image']!, images: 'reference' }
    return { routes }
  },
  // A route that a build lacks is answered by 404 without a body; an unknown job by 404 with one. Source: sd-server of
  // stable-diffusion.cpp as of September 2026 (examples/server), tried and read.
  quirks: [
    { status: 404, pattern: /^\s*$/, code: 'unsupported_task' },
    { status: 400, pattern: /does not support (img_gen|vid_gen|requested mode)/, code: 'unsupported_task' },
  ],
})
