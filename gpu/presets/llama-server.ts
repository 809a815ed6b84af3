import type { Feature, Model } from '../../core/models/model.ts'
import { openaiAudio } from '../../core/tasks/protocols/openai-audio.ts'
import { openaiText } from '../../core/tasks/protocols/openai-text.ts'
import { toolAdapter } from './llama-tools.ts'
import { generates, type Preset, traitsFor } from './preset.ts'
import { type Quirk, refusal } from './refusal.ts'
import { routesOf } from './routes.ts'

/** Source: llama.cpp v0.5.0's server, run; it answers 500 and 501 to what is the caller's mistake. */
const quirks: Quirk[] = [
  { status: 500, says: /parse error|parse_error|json\.exception|invalid json/i, code: 'invalid_json' },
  { status: 500, says: /(image|audio|video) input is not supported/i, code: 'unsupported_parameter' },
  { status: 500, says: /increase the physical batch size|input is too large/i, code: 'context_length_exceeded' },
  { status: 501, says: /not_supported|not support/i, code: 'unsupported_task' },
]

/** Without `repetition_penalty`, which it knows by another name, and with eyes and ears only when it is given them. */
const abilities: Feature[] = [
  'tools',
  'json_object',
  'json_schema',
  'logprobs',
  'logit_bias',
  'penalties',
  'top_k',
  'min_p',
  'chat_template_kwargs',
]

/** Flags by the one task family that a llama-server does per process. */
function family(model: Model): string[] {
  if (generates(model)) return ['--jinja']
  const batch = model.context_length ? ['-ub', String(model.context_length), '-b', String(model.context_length)] : []
  return [model.tasks.includes('std/rerank') ? '--reranking' : '--embeddings', ...batch]
}

/** llama.cpp's own server, where the operator has one: vision, tool calls, real JSON schema grammars. */
export const llamaServer: Preset = {
  name: 'llama-server',
  runsOn: 'either',
  lacks: model => (model.source ? undefined : "it needs 'source', the GGUF file."),
  slots: 4,
  channel: () => 'port',
  sandbox: { level: 'files' },
  command: (model, { slots, threads, gpus }) =>
    [
      ['llama-server', '-m', model.source ?? '', '--host', '127.0.0.1', '--port', '{port}'],
      ['--alias', model.upstream_id ?? model.id, '-np', String(slots)],
      // -c is the sum over all slots there.
      model.context_length ? ['-c', String(model.context_length * slots)] : [],
      ['-t', String(threads), '-tb', String(threads), '-ngl', gpus > 0 ? '999' : '0'],
      ['--metrics', '--slots', '--offline', '--no-ui'],
      family(model),
      model.args,
    ].flat(),
  env: (_model, key) => ({ LLAMA_API_KEY: key, GOMP_SPINCOUNT: '0' }),
  key: (_model, launchKey) => launchKey,
  address: () => undefined,
  healthPath: () => '/health',
  runningPath: model => (generates(model) ? '/slots' : null),
  // A prompt is computed to the end of its batch, 16 s in one case, and then the slot is free.
  cancelGraceMs: model => model.no_progress,
  describedAt: model => (generates(model) ? '/props' : null),
  adapter: toolAdapter,
  loadStallMs: model => model.load_timeout,
  keepAliveMs: 4_000,
  traits: model =>
    traitsFor(model, {
      routes: routesOf(
        [openaiText, openaiAudio],
        ['std/chat-completion', 'std/completion', 'std/embeddings', 'std/rerank', 'std/audio-transcription'],
      ),
      features: model.args.includes('--mmproj') ? [...abilities, 'images', 'audio'] : abilities,
      rerankScores: 'logit',
      scoreBy: model.tasks.includes('std/rerank') ? 'rerank' : 'embeddings',
      dimensions: false,
      base64: true,
      streamUsage: 'progress',
      namedTool: false,
      promptLists: false,
      jsonObject: 'schema',
    }),
  failureOf: (status, body) => refusal(status, body, quirks),
}
