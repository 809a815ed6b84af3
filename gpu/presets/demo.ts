import { selfCommand } from '../../core/assets.ts'
import { isVideoTask, operationOf } from '../../core/schemas/task.ts'
import { inferGeneration } from '../../core/tasks/protocols/infer-generation.ts'
import { openaiAudio } from '../../core/tasks/protocols/openai-audio.ts'
import { openAiVoices, voices } from '../engines/demo/chords.ts'
import { ffmpegProgram } from './ffmpeg-program.ts'
import { noText, type Preset, traitsFor } from './preset.ts'
import { engineRefusal } from './refusal.ts'
import { routesOf } from './routes.ts'

/**
 * The built-in demo engine, which draws without a model: this executable with other arguments. It loads no weights. Its
 * options are set in the `args` of the model: `--step-ms 200` makes it slow enough to show its progress.
 */
export const demo: Preset = {
  name: 'demo',
  runsOn: 'cpu',
  configurationFault: () => undefined,
  programs: ({ args }, task) => (isVideoTask(task) ? [ffmpegProgram(ffmpegIn(args))] : []),
  // For two slots: 150 MB for the engine, 140 MB for a video in 720p, 400 MB for one with interpolated frames.
  memory: 768 * 2 ** 20,
  slots: 2,
  channel: () => 'socket',
  sandbox: { level: 'strict', isOwn: true, programs: ['ffmpeg'] },
  command(model) {
    const own = [
      'engine',
      'demo',
      '--id',
      model.upstream_id ?? model.id,
      '--socket',
      '{socket}',
      ...(model.tasks.some(task => operationOf(task) in inferGeneration.paths) ? [] : ['--sound-only']),
    ]
    const { file, args } = selfCommand([...own, ...model.args])
    return [file, ...args]
  },
  env: (_model, key) => ({ ...selfCommand([]).env, INFER_ENGINE_KEY: key }),
  key: (_model, launchKey) => launchKey,
  address: () => undefined,
  healthPath: () => '/health',
  reportsRunning: () => true,
  loadStallMs: model => model.load_timeout,
  keepAliveMs: 110_000,
  traits: model =>
    traitsFor(model, {
      ...noText,
      routes: {
        ...routesOf([inferGeneration]),
        ...routesOf([openaiAudio], ['synthesize', 'transcribe']),
      },
      speech: { formats: ['wav', 'pcm'], voices: voices.map(({ id }) => id), aliases: openAiVoices },
      features: ['segments', 'words', 'transcription_stream', 'voice_cloning', 'variations', 'transparent_background'],
      inputImages: 16,
    }),
  failureOf: (status, body) => engineRefusal(status, body),
}

/** The value of the last `--ffmpeg` option. */
const ffmpegIn = (args: readonly string[]): string =>
  args.includes('--ffmpeg') ? (args[args.lastIndexOf('--ffmpeg') + 1] ?? 'ffmpeg') : 'ffmpeg'
