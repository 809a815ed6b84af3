import { expect, test } from 'vitest'
import { parseConfig } from '../../../core/models/config.ts'
import { modelNames } from '../../../core/models/model-names.ts'
import { fallbackText, nameText } from '../../../core/models/name-texts.ts'

const { models } = parseConfig(
  `models:
  - id: llama
    source: /m.gguf
    aliases: [gpt-4o]
    profiles: { terse: { max_tokens: 2, price: { input_per_million_tokens: 1 } }, plain: {} }
  - id: poet
    adapter: { of: llama, source: /l.gguf }
    aliases: [bard]
    profiles: { haiku: { max_tokens: 20 } }
`,
  'infer.yaml',
)
const names = new Map(models.flatMap(modelNames).map(one => [one.name, one]))

test.each([
  ['llama', null],
  ['gpt-4o', "'gpt-4o' is an alias of 'llama'."],
  ['terse', "'terse' is a profile of 'llama': the same engine, with its own max_tokens, price."],
  ['plain', "'plain' is a profile of 'llama': the same engine."],
  ['poet', "'poet' is a LoRA adapter of 'llama': it shares the engine, the queue and the slots of that model."],
  ['bard', "'bard' is an alias of 'poet', a LoRA adapter of 'llama'."],
  ['haiku', "'haiku' is a profile of 'poet', a LoRA adapter of 'llama': the same engine, with its own max_tokens."],
])('the name %s', (name, text) => expect(nameText(names.get(name)!)).toBe(text))

test.each([
  [['failed'], undefined, "'b' answers when 'a' fails."],
  [['failed', 'context'], undefined, "'b' answers when 'a' fails or when the prompt is longer than its context."],
  [
    ['failed', 'context'],
    30_000,
    "'b' answers when 'a' fails, when the prompt is longer than its context or when a request would wait longer than 30s.",
  ],
  [[], 90_000, "'b' answers when a request would wait longer than 90s."],
] as const)('a fallback for %s and a wait of %s ms', (when, wait, text) =>
  expect(fallbackText('a', { model: 'b', when: [...when], wait })).toBe(text),
)
