import type { Command } from 'commander'
import { dataDirectory } from '../../core/config.ts'
import { streamAnswer, wholeAnswer } from '../chat/ask.ts'
import type { Manner } from '../chat/conversation.ts'
import { openClient } from '../client.ts'
import { usage } from '../exit-codes.ts'
import { interruptible } from '../interruption.ts'
import { collect, readCount, readNumber, withDataDir, withExamples, withJson } from '../options.ts'
import { contentOf, promptOf } from '../run/prompt.ts'
import { showAnswer } from '../run/show.ts'
import { isPiped, readAll, remarking } from '../standard-input.ts'
import type { Terminal } from '../terminal.ts'

interface Options extends Manner {
  system?: string
  image?: string[]
  hideReasoning?: boolean
  figures?: boolean
  json?: boolean
  dataDir?: string
}

/** `infer run <model> [prompt…]`: one question, one answer. What is piped in stands below the prompt. */
export function define(command: Command, terminal: Terminal): void {
  withDataDir(withJson(command))
    .description(
      'Asks a model one question and streams the answer to standard output. The question is the prompt, with what is piped in below it. Reasoning goes to standard error, so that a pipe carries the answer only.',
    )
    .argument('<model>', 'id of the model')
    .argument('[prompt...]', 'the question; standard input alone when left out')
    .option('--system <text>', 'an instruction that stands before everything')
    .option('--image <file>', 'show the model an image file or address, repeatable', collect)
    .option('--temperature <number>', 'how freely words are chosen, 0 to 2', readNumber(0, 2))
    .option('--max-tokens <count>', 'the longest answer', readCount(1, 10_000_000))
    .option('--seed <number>', 'the same number gives the same answer', readCount(0, Number.MAX_SAFE_INTEGER))
    .option('--hide-reasoning', 'do not show what the model thinks before it answers')
    .option('--figures', 'say at the end how long it took and how fast it was')
    .action(async (model: string, words: string[], options: Options) => {
      const { system, json, image = [], hideReasoning, figures, temperature, maxTokens, seed } = options
      const prompt = promptOf(words, isPiped() ? await remarking(terminal, readAll(terminal.stdin)) : '')
      if (prompt === '' && image.length === 0)
        throw usage('There is no prompt. Write: infer run <model> "your question", or pipe it in.')
      const content = contentOf(prompt, image)
      const client = openClient(dataDirectory(options.dataDir))
      const body = {
        model,
        messages: [...(system === undefined ? [] : [{ role: 'system', content: system }]), { role: 'user', content }],
        ...(temperature === undefined ? {} : { temperature }),
        ...(maxTokens === undefined ? {} : { max_completion_tokens: maxTokens }),
        ...(seed === undefined ? {} : { seed }),
      }
      await interruptible(terminal, async signal => {
        const asking = { client, signal, onWait: () => terminal.waiting(`${model} is being loaded…`) }
        if (json) terminal.json(await wholeAnswer(body, asking))
        else
          await showAnswer(terminal, streamAnswer(body, asking), {
            reasoning: hideReasoning !== true,
            figures: figures === true,
          })
      })
    })
  withExamples(command, [
    ['infer run qwen3-8b "Why is the sky blue?"', 'the answer, as it is written'],
    ['git diff | infer run qwen3-8b "Write a commit message"', 'prompt and piped text together'],
    ['infer run qwen3-vl "What is this?" --image cat.png', 'with an image'],
    ['infer run qwen3-8b --json < prompt.txt', 'the whole answer as the API gives it'],
  ])
}
