import type { Command } from 'commander'
import { dataDirectory } from '../../core/config.ts'
import { defaultModel } from '../chat/ask.ts'
import { type ChatSettings, openConversation } from '../chat/conversation.ts'
import { chatInPipe } from '../chat/pipe.ts'
import { chatInTerminal } from '../chat/session.ts'
import { openClient } from '../client.ts'
import { readCount, readNumber, withDataDir, withExamples, withJson } from '../options.ts'
import type { Terminal } from '../terminal.ts'

interface Options extends ChatSettings {
  system?: string
  history: boolean
  json?: boolean
  dataDir?: string
}

/** `infer chat [model]`: a talk in the terminal; in a pipe, one question and its answer. */
export function define(command: Command, terminal: Terminal): void {
  withDataDir(withJson(command))
    .argument('[model]', 'id of the model; the first one that can chat when left out')
    .option('--system <text>', 'an instruction that stands before everything')
    .option('--temperature <number>', 'how freely words are chosen, 0 to 2', readNumber(0, 2))
    .option('--max-tokens <count>', 'the longest answer', readCount(1, 10_000_000))
    .option('--seed <number>', 'the same number gives the same answer', readCount(0, Number.MAX_SAFE_INTEGER))
    .option('--no-history', 'neither keep nor offer what is typed')
    .action(async (model: string | undefined, options: Options) => {
      const client = openClient(dataDirectory(options.dataDir))
      const chosen = model ?? (await defaultModel(client))
      const { system, json, temperature, maxTokens, seed } = options
      const settings = { temperature, maxTokens, seed }
      if (terminal.interactive && !json)
        await chatInTerminal(terminal, { client }, openConversation({ model: chosen, system, settings }), {
          keepsHistory: options.history,
        })
      else await chatInPipe(terminal, { client }, { model: chosen, system, settings, json: json === true })
    })
  withExamples(command, [
    ['infer chat', 'talk to the first model'],
    ['infer chat qwen3-8b --system "Be brief."', 'talk to this one'],
    ['echo "Why is the sky blue?" | infer chat', 'one question, one answer'],
    ['infer chat --json < prompt.txt', 'the whole answer as the API gives it'],
    ['INFER_URL=https://gpu.example INFER_TOKEN=sk-… infer chat', 'on another machine'],
  ])
}
