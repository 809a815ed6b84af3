import type { Command } from '@commander-js/extra-typings'
import { chatInPipe, defaultModel } from '../chat/ask.ts'
import { openConversation } from '../chat/conversation.ts'
import { chatInTerminal } from '../chat/session.ts'
import { openClient } from '../client/client.ts'
import { readCount, readNumber, withCommon, withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** `infer chat [model]`: a chat in the terminal; in a pipe, one prompt and its answer. */
export function define(command: Command, terminal: Terminal): void {
  withCommon(command)
    .argument('[model]', 'id of the model; default: the first chat model')
    .option('--system <text>', 'system prompt')
    .option('--temperature <number>', 'sampling temperature, 0 to 2', readNumber(0, 2))
    .option('--max-tokens <count>', 'maximum length of the answer in tokens', readCount(1, 10_000_000))
    .option('--seed <number>', 'the same number gives the same answer', readCount(0, Number.MAX_SAFE_INTEGER))
    .option('--no-history', 'do not keep or offer typed lines')
    .action(async (model, options) => {
      const client = openClient(options.dataDir)
      const modelId = model ?? (await defaultModel(client))
      const { system, json, temperature, maxTokens, seed } = options
      const settings = { temperature, maxTokens, seed }
      if (terminal.interactive && !json)
        await chatInTerminal(terminal, { client }, openConversation({ model: modelId, system, settings }), {
          keepsHistory: options.history,
        })
      else await chatInPipe(terminal, { client }, { model: modelId, system, settings, json: json === true })
    })
  withExamples(command, [
    ['infer chat', 'with the first chat model'],
    ['infer chat qwen3-8b --system "Be brief."', 'with this model'],
    ['echo "Why is the sky blue?" | infer chat', 'one prompt, one answer'],
    ['infer chat --json < prompt.txt', 'the complete response of the API'],
    ['INFER_URL=https://gpu.example INFER_TOKEN=sk-… infer chat', 'with a server on another machine'],
  ])
}
