import type { Feature, Model } from '../../core/models/model.ts'
import { openaiAudio } from '../../core/tasks/protocols/openai-audio.ts'
import { openaiText } from '../../core/tasks/protocols/openai-text.ts'
import { everything, generates, type Preset, traitsFor } from './preset.ts'
import { refusal } from './refusal.ts'
import { routesOf } from './routes.ts'

/**
 * vLLM 0.26 and later. Its memory fraction is a share of the whole card and it does not start when less than that is
 * free, so it is told exactly what was booked. `/health` is the one to ask: other routes answer too early.
 */
export const vllm: Preset = {
  name: 'vllm',
  runsOn: 'gpu',
  lacks: () => undefined,
  slots: 256,
  channel: () => 'port',
  sandbox: { level: 'files' },
  command: (model, { gpus, memoryShare, slots }) =>
    [
      ['vllm', 'serve', model.source ?? model.id, '--host', '127.0.0.1', '--port', '{port}'],
      ['--served-model-name', model.upstream_id ?? model.id, '--tensor-parallel-size', String(Math.max(1, gpus))],
      ['--gpu-memory-utilization', share(memoryShare), '--max-num-seqs', String(slots)],
      model.context_length ? ['--max-model-len', String(model.context_length)] : [],
      speaks(model) ? ['--omni'] : generates(model) || hears(model) ? [] : ['--runner', 'pooling'],
      model.args,
    ].flat(),
  env: (_model, key) => ({ VLLM_API_KEY: key, VLLM_NO_USAGE_STATS: '1', DO_NOT_TRACK: '1' }),
  key: (_model, launchKey) => launchKey,
  address: () => undefined,
  healthPath: () => '/health',
  loadStallMs: model => model.load_timeout,
  keepAliveMs: 4_000,
  traits: model =>
    traitsFor(model, {
      routes: routesOf([openaiText, openaiAudio]),
      features: everything.filter(feature => !lacking.has(feature)),
      rerankScores: 'probability',
      scoreBy: 'score',
      dimensions: true,
      base64: true,
      streamUsage: 'continuous',
      namedTool: true,
      promptLists: true,
    }),
  failureOf: (status, body) => refusal(status, body),
}

/** Sound is made by vLLM-Omni, which is asked for with this option. */
const speaks = ({ tasks }: Model): boolean => tasks.includes('std/audio-speech')

/** Whisper and its like answer in text, which is made as a chat model makes it. */
const hears = ({ tasks }: Model): boolean =>
  tasks.includes('std/audio-transcription') || tasks.includes('std/audio-translation')

/** Its engine answers a suffix with a refusal and has given `best_of` up; of what it hears it times segments only. */
const lacking: ReadonlySet<Feature> = new Set(['files', 'suffix', 'best_of', 'words', 'speakers'])

/** Between a tenth and what leaves room for the driver's own; rounded down so that the sum of shares stays below one. */
const share = (of: number): string => String(Math.floor(Math.min(0.95, Math.max(0.1, of)) * 100) / 100)
