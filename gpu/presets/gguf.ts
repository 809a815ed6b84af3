import { selfCommand } from '../../core/assets.ts'
import { openAiPaths, type Preset, traitsFor } from './preset.ts'
import { refusal } from './refusal.ts'

/**
 * The built-in engine: this program, run again. It computes on the processor; the CUDA builds of its library are half
 * a gigabyte and need a newer driver than most machines have, so cards are for the other engines.
 */
export const gguf: Preset = {
  name: 'gguf',
  runsOn: 'cpu',
  lacks: model => (model.source ? undefined : "it needs 'source', the GGUF file."),
  slots: 4,
  channel: () => 'socket',
  command(model, { slots, threads }) {
    const { file, args } = selfCommand(
      [
        ['engine', 'gguf', '--model', model.source ?? '', '--id', model.upstream_id ?? model.id],
        model.tasks.flatMap(task => ['--task', task]),
        ['--socket', '{socket}', '--threads', String(threads), '--parallel', String(slots)],
        model.context_length ? ['--context', String(model.context_length)] : [],
        model.args,
      ].flat(),
    )
    return [file, ...args]
  },
  env: (_model, key) => ({ ...selfCommand([]).env, INFER_ENGINE_KEY: key }),
  key: (_model, launchKey) => launchKey,
  address: () => undefined,
  healthPath: () => '/health',
  loadStallMs: model => model.load_timeout,
  keepAliveMs: 110_000,
  traits: model =>
    traitsFor(model, {
      paths: openAiPaths,
      features: [
        'tools',
        'json_object',
        'json_schema',
        'logprobs',
        'n',
        'logit_bias',
        'penalties',
        'top_k',
        'min_p',
        'repetition_penalty',
        'chat_template_kwargs',
        'echo',
      ],
      rerankScores: 'probability',
      scoreBy: 'score',
      dimensions: false,
      base64: false,
      streamUsage: 'end',
      namedTool: true,
      promptLists: true,
    }),
  failureOf: (status, body) => refusal(status, body),
}
