import { operationOf } from '../../core/schemas/task.ts'
import { inferGeneration } from '../../core/tasks/protocols/infer-generation.ts'
import { openAiVoices, voices } from '../engines/demo/chords.ts'
import { definePreset, ffmpegFor, ownCommand, ownEngine, upstreamId } from './preset.ts'
import { routesOf } from './routes.ts'

/**
 * The built-in demo engine, which draws without a model: this executable with other arguments. It loads no weights. Its
 * options are set in the `args` of the model: `--step-ms 200` makes it slow enough to show its progress.
 */
export const demo = definePreset({
  name: 'demo',
  runsOn: 'cpu',
  programs: ({ args }, task) => ffmpegFor(task, ffmpegIn(args)),
  // For two slots: 150 MB for the engine, 140 MB for a video in 720p, 400 MB for one with interpolated frames.
  memory: 768 * 2 ** 20,
  slots: 2,
  ...ownEngine,
  sandbox: { level: 'strict', isOwn: true, programs: ['ffmpeg'] },
  command: model =>
    ownCommand(
      ['demo', '--id', upstreamId(model), '--socket', '{socket}'],
      model.tasks.some(task => operationOf(task) in inferGeneration.paths) ? [] : ['--sound-only'],
      model.args,
    ),
  reportsRunning: () => true,
  abilities: () => ({
    routes: routesOf({ inferGeneration: 'all', openaiAudio: ['synthesize', 'transcribe'] }),
    speech: { formats: ['wav', 'pcm'], voices: voices.map(({ id }) => id), aliases: openAiVoices },
    features: ['segments', 'words', 'transcription_stream', 'voice_cloning', 'variations', 'transparent_background'],
    inputImages: 16,
  }),
})

/** The value of the last `--ffmpeg` option. */
const ffmpegIn = (args: readonly string[]): string =>
  args.includes('--ffmpeg') ? (args[args.lastIndexOf('--ffmpeg') + 1] ?? 'ffmpeg') : 'ffmpeg'
