import { once } from 'node:events'
import type { Command } from '@commander-js/extra-typings'
import {
  batchStatusText,
  countsText,
  findBatchId,
  followBatch,
  getBatch,
  listBatches,
  openBatchInput,
  reportEnd,
  uploadInput,
} from '../batches/batch.ts'
import { dataOf, openClient } from '../client/client.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { readCount, withCommon, withDataDir, withExamples } from '../terminal/options.ts'
import { timeText } from '../terminal/quantities-text.ts'
import type { Terminal } from '../terminal/terminal.ts'

const withId = (command: Command) => withCommon(command).argument('<id>', 'the batch, or the end of its id')

/** `infer batch …`: files of requests that run in the background. */
export function define(command: Command, terminal: Terminal): void {
  defineSubmit(command, terminal)
  defineList(command, terminal)
  defineShow(command, terminal)
  defineWatch(command, terminal)
  defineCancel(command, terminal)
  defineResults(command, terminal)
  withExamples(command, [
    ['infer batch submit questions.jsonl --wait', 'run the requests of a file'],
    ['infer batch results 7QK2M9XD > answers.jsonl', 'the answers, by the end of its id'],
  ])
}

function defineSubmit(command: Command, terminal: Terminal): void {
  const submit = withCommon(command.command('submit'))
    .summary('run the requests of a file')
    .description(
      'Uploads a file of requests, one JSON object in each line, and runs them in the background after all other work.',
    )
    .argument('<file>', 'file in JSON Lines; - for standard input')
    .option('--endpoint <path>', 'endpoint of all lines; default: that of the first line')
    .option('--window <hours>', 'time in which it is to end, 1h to 168h', '24h')
    .option('--wait', 'wait for its end')
    .action(async (path, options) => {
      const { json = false, dataDir, window, wait } = options
      const client = openClient(dataDir)
      await interruptible(terminal, async signal => {
        const input = await openBatchInput(path, terminal.stdin)
        const endpoint = options.endpoint ?? input.endpoint
        if (endpoint === undefined)
          throw usageFailure(
            "The first line names no 'url'. Name the endpoint of the lines: --endpoint /v1/chat/completions",
          )
        const input_file_id = await uploadInput(client, input, signal)
        const body = { input_file_id, endpoint, completion_window: window }
        const created = await dataOf(client.api.POST('/std/v1/batches', { body, signal }))
        if (!wait) {
          if (json) return terminal.json(created)
          terminal.print(created.id)
          return terminal.remark(`Follow it: infer batch watch ${created.id}`)
        }
        if (!json) terminal.remark(`${created.id} was created.`)
        await followBatch(client, created.id, { terminal, json, signal })
      })
    })
  withExamples(submit, [
    ['infer batch submit questions.jsonl --wait', 'with a progress bar'],
    ['make-requests | infer batch submit - --json', 'from a program, for a program'],
  ])
}

function defineList(command: Command, terminal: Terminal): void {
  const list = withCommon(command.command('list'))
    .summary('list batches, newest first')
    .description('Lists the batches of the organization, newest first.')
    .option('--limit <count>', 'maximum number, 1 to 100', readCount(1, 100), 20)
    .action(async ({ json, dataDir, limit }) => {
      const client = openClient(dataDir)
      const page = await listBatches(client, limit)
      if (json) return terminal.json({ batches: page.data, has_more: page.has_more })
      if (page.data.length === 0) return terminal.remark('There are no batches yet. See: infer batch submit --help')
      terminal.table(
        ['id', 'status', 'lines', 'model', 'created'],
        page.data.map(batch => [
          batch.id,
          batchStatusText(batch),
          countsText(batch),
          batch.model ?? '',
          timeText(batch.created_at * 1000),
        ]),
      )
    })
  withExamples(list, [['infer batch list --json', 'for a program']])
}

function defineShow(command: Command, terminal: Terminal): void {
  const show = withId(command.command('show'))
    .summary('show a batch')
    .description('Shows a batch: its state, the counts of its lines, and what is wrong with its file.')
    .action(async (text, { json, dataDir }) => {
      const client = openClient(dataDir)
      const batch = await getBatch(client, await findBatchId(client, text))
      if (json) return terminal.json(batch)
      reportEnd(batch, terminal)
      terminal.setExitCode(0)
    })
  withExamples(show, [['infer batch show 7QK2M9XD', 'by the end of its id']])
}

function defineWatch(command: Command, terminal: Terminal): void {
  const watch = withId(command.command('watch'))
    .summary('follow a batch to its end')
    .description('Shows the progress of a batch until it ends. Exits with 1 unless it completes.')
    .action(async (text, { json = false, dataDir }) => {
      const client = openClient(dataDir)
      await interruptible(terminal, async signal => {
        const id = await findBatchId(client, text)
        await followBatch(client, id, { terminal, json, signal })
      })
    })
  withExamples(watch, [['infer batch watch 7QK2M9XD', 'Ctrl-C leaves it running']])
}

function defineCancel(command: Command, terminal: Terminal): void {
  const cancel = withId(command.command('cancel'))
    .summary('cancel a batch')
    .description('Cancels the lines of a batch that have not ended. The answers of the others are kept.')
    .action(async (text, { json, dataDir }) => {
      const client = openClient(dataDir)
      const id = await findBatchId(client, text)
      const batch = await dataOf(client.api.POST('/std/v1/batches/{id}/cancel', { params: { path: { id } } }))
      terminal.result(json, batch, `${id} is ${batchStatusText(batch)}: ${countsText(batch)}.`)
    })
  withExamples(cancel, [['infer batch cancel 7QK2M9XD', 'by the end of its id']])
}

function defineResults(command: Command, terminal: Terminal): void {
  const results = withDataDir(command.command('results'))
    .argument('<id>', 'the batch, or the end of its id')
    .summary('print the answers of a batch')
    .description('Prints the output file of a batch: one JSON object for each line that has an answer, in any order.')
    .option('--errors', 'print the errors of the other lines instead')
    .action(async (text, { errors, dataDir }) => {
      const client = openClient(dataDir)
      await interruptible(terminal, async signal => {
        const batch = await getBatch(client, await findBatchId(client, text), signal)
        const file = errors ? batch.error_file_id : batch.output_file_id
        if (file === null) {
          const none = errors ? 'No line has failed.' : 'No line has an answer. See: infer batch results --errors'
          const text = batch.status === 'in_progress' ? `Wait for its end: infer batch watch ${batch.id}` : none
          throw refused('not_found', `The batch ${batch.id} is ${batchStatusText(batch)}. ${text}`)
        }
        for await (const piece of client.content(`/std/v1/files/${file}/content`, signal, 0))
          if (!terminal.stdout.write(piece)) await once(terminal.stdout, 'drain', { signal })
      })
    })
  withExamples(results, [
    ['infer batch results 7QK2M9XD > answers.jsonl', 'into a file'],
    ['infer batch results 7QK2M9XD | jq -r .custom_id', 'into a program'],
  ])
}
