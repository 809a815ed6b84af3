import type { Command } from '@commander-js/extra-typings'
import { type Api, dataOf, openClient } from '../client/client.ts'
import { untilLoaded } from '../client/refusal.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { readCount, withCommon, withExamples } from '../terminal/options.ts'
import { announceWait, isPiped, readLines } from '../terminal/standard-input.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

type Answer = Api['EmbeddingsResponse']

/** Small enough for the first vectors to arrive soon, large enough to keep the overhead per request low. */
const textsPerRequest = 64

interface Vector {
  index: number
  text: string
  embedding: number[]
}

/** `infer embed <model> [texts…]`: embeds texts. Prints a summary in a terminal, JSON lines in a pipe. */
export function define(command: Command, terminal: Terminal): void {
  withCommon(command)
    .description(
      'Turns texts into vectors. The texts are the arguments, or the lines of standard input. In a pipe prints one JSON object per line, with index, text and embedding; in a terminal prints a summary.',
    )
    .argument('<model>', 'id of the model')
    .argument('[texts...]', 'the texts; default: the lines of standard input')
    .option(
      '--dimensions <count>',
      'length of the vectors, if the model supports shorter ones',
      readCount(1, 1_000_000),
    )
    .action(async (model, given, { dimensions, json, dataDir }) => {
      const texts = given.length > 0 ? given : isPiped() ? await announceWait(terminal, readLines(terminal.stdin)) : []
      if (texts.length === 0)
        throw usageFailure('There is no text. Write: infer embed <model> "a text", or pipe in one text per line.')
      const client = openClient(dataDir)
      await interruptible(terminal, async signal => {
        const vectors: Vector[] = []
        let combined: Answer | undefined
        for (let at = 0; at < texts.length; at += textsPerRequest) {
          const input = texts.slice(at, at + textsPerRequest)
          const body = { model, input, dimensions }
          const answer = await untilLoaded(
            () => dataOf(client.api.POST('/std/v1/embeddings', { body, signal })) as Promise<Answer>,
            { signal, onWait: () => terminal.waiting(`Loading ${model}…`) },
          )
          terminal.progress('')
          const data = answer.data.map(one => ({ ...one, index: at + one.index }))
          combined = joined(combined, { ...answer, data })
          const batch = data.map(({ index, embedding }) => ({
            index,
            text: texts[index] ?? '',
            // Base64 only where it is requested.
            embedding: embedding as number[],
          }))
          if (!json && !terminal.isTerminal) for (const vector of batch) terminal.print(JSON.stringify(vector))
          else vectors.push(...batch)
        }
        if (json) terminal.json(combined)
        else if (terminal.isTerminal) terminal.table(['dimensions', 'vector', 'text'], vectors.map(summaryOf))
      })
    })
  withExamples(command, [
    ['infer embed bge-m3 "A cat sat on the mat."', 'one text'],
    ['infer embed bge-m3 < sentences.txt > vectors.jsonl', 'one text per line, one vector per line'],
    ['infer embed bge-m3 "Hello" --json', 'the complete response of the API'],
  ])
}

/** Combines the responses for two parts of a list into one response. */
function joined(before: Answer | undefined, next: Answer): Answer {
  if (!before) return next
  return {
    ...before,
    data: [...before.data, ...next.data],
    usage: {
      ...before.usage,
      prompt_tokens: before.usage.prompt_tokens + next.usage.prompt_tokens,
      total_tokens: before.usage.total_tokens + next.usage.total_tokens,
    },
  }
}

function summaryOf({ text, embedding }: Vector): string[] {
  const first = embedding.slice(0, 4).map(value => value.toFixed(3))
  return [
    String(embedding.length),
    `[${first.join(', ')}${embedding.length > first.length ? ', …' : ''}]`,
    printable(text).replaceAll(/\s+/g, ' '),
  ]
}
