import type { Feature, Model } from '../../core/models/model.ts'
import { isFor } from '../../core/schemas/task.ts'
import { openaiAudio } from '../../core/tasks/protocols/openai-audio.ts'
import { classification, openaiText } from '../../core/tasks/protocols/openai-text.ts'
import { allFeatures, generates, type Preset, traitsFor } from './preset.ts'
import { engineRefusal } from './refusal.ts'
import { routesOf } from './routes.ts'
import { shareOfMainMemory } from './share-of-main-memory.ts'

/**
 * vLLM 0.26 and later. Its memory fraction is a share of the whole card, and it does not start when less is free, so it
 * gets exactly the booked share; a build for the processor takes it of the main memory. Readiness is read from `/health`,
 * because other routes answer too early. Tried with 0.32.0 on the processor.
 */
export const vllm: Preset = {
  name: 'vllm',
  runsOn: 'gpu',
  installation: () => ({ program: 'vllm', advice: 'Install it with: pip install vllm' }),
  configurationFault: () => undefined,
  slots: 256,
  channel: () => 'port',
  sandbox: { level: 'files' },
  command: (model, { gpus, memoryShare, slots }) =>
    [
      ['vllm', 'serve', model.source ?? model.id, '--host', '127.0.0.1', '--port', '{port}'],
      ['--served-model-name', model.upstream_id ?? model.id, '--tensor-parallel-size', String(Math.max(1, gpus))],
      [
        '--gpu-memory-utilization',
        gpus > 0 ? formatShare(memoryShare) : shareOfMainMemory(memoryShare),
        '--max-num-seqs',
        String(slots),
      ],
      model.context_length ? ['--max-model-len', String(model.context_length)] : [],
      synthesizes(model) ? ['--omni'] : generates(model) || transcribes(model) ? [] : ['--runner', 'pooling'],
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
      routes: routesOf([openaiText, classification, openaiAudio]),
      features: allFeatures.filter(feature => !unsupported.has(feature)),
      rerankScores: 'probability',
      scoreBy: 'score',
      dimensions: true,
      base64: true,
      streamUsage: 'continuous',
      namedTool: true,
      promptLists: true,
      speech: { reference: { audio: 'ref_audio', text: 'ref_text' } },
    }),
  failureOf: (status, body) => engineRefusal(status, body),
}

/** Speech is synthesized by vLLM-Omni, which needs the option `--omni`. */
const synthesizes = ({ tasks }: Model): boolean => isFor(tasks, 'synthesize')

/** Transcription models such as Whisper generate text like chat models, so they need no pooling runner. */
const transcribes = ({ tasks }: Model): boolean => isFor(tasks, 'transcribe', 'translate')

/** vLLM refuses a suffix, no longer supports `best_of`, and has timestamps for segments only. */
const unsupported: ReadonlySet<Feature> = new Set(['files', 'suffix', 'best_of', 'words', 'speakers'])

/** At least 0.1; at most 0.95, because the driver needs some. Rounded down so that the shares add up to less than 1. */
const formatShare = (share: number): string => String(Math.floor(Math.min(0.95, Math.max(0.1, share)) * 100) / 100)
