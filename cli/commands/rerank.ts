import type { Command } from '@commander-js/extra-typings'
import { type Api, dataOf, openClient } from '../client/client.ts'
import { untilLoaded } from '../client/refusal.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { readCount, withCommon, withExamples } from '../terminal/options.ts'
import { announceWait, isPiped, readLines } from '../terminal/standard-input.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** The API's limit for one request. Scores of different requests cannot be compared, so there is only one. */
const maxDocuments = 1_000

/** `infer rerank <model> <query> [documents…]`: sorts documents by relevance to the query, best first. */
export function define(command: Command, terminal: Terminal): void {
  withCommon(command)
    .description(
      'Sorts documents by relevance to a query, best first. The documents are the arguments, or the lines of standard input.',
    )
    .argument('<model>', 'id of the model')
    .argument('<query>', 'the search query')
    .argument('[documents...]', 'the documents; default: the lines of standard input')
    .option('--top <count>', 'number of best documents to print', readCount(1, maxDocuments))
    .action(async (model, query, given, { top, json, dataDir }) => {
      const documents =
        given.length > 0 ? given : isPiped() ? await announceWait(terminal, readLines(terminal.stdin)) : []
      if (documents.length === 0)
        throw usageFailure(
          'There are no documents. Write: infer rerank <model> "query" "one" "another", or pipe in one per line.',
        )
      if (documents.length > maxDocuments)
        throw usageFailure(`There are ${documents.length} documents; at most ${maxDocuments} can be compared at once.`)
      const client = openClient(dataDir)
      await interruptible(terminal, async signal => {
        const body = { model, query, documents, top_n: top }
        const answer = await untilLoaded(
          () => dataOf(client.api.POST('/std/v1/rerank', { body, signal })) as Promise<Api['RerankResponse']>,
          { signal, onWait: () => terminal.waiting(`Loading ${model}…`) },
        )
        terminal.progress('')
        if (json) terminal.json(answer)
        else
          terminal.table(
            ['rank', 'score', 'line', 'document'],
            answer.data.map(({ index, relevance_score }, rank) => [
              String(rank + 1),
              relevance_score.toFixed(4),
              String(index + 1),
              printable(documents[index] ?? '').replaceAll(/\s+/g, ' '),
            ]),
          )
      })
    })
  withExamples(command, [
    ['infer rerank bge-reranker "a small cat" "a kitten" "a lorry"', 'the best first'],
    ['grep -h TODO *.md | infer rerank bge-reranker "security" --top 5', 'the most relevant lines'],
    ['infer rerank bge-reranker "cat" --json < documents.txt', 'the complete response of the API'],
  ])
}
