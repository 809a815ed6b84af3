import { type Command, Option } from '@commander-js/extra-typings'
import { apiPurposes, uploadPurposes } from '../../core/store/file-records.ts'
import { dataOf, openClient } from '../client/client.ts'
import { downloadFile, fileOf, type StoredFile, uploadFile } from '../files/file-client.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { readCount, readDuration, withCommon, withExamples } from '../terminal/options.ts'
import { sizeText, timeText } from '../terminal/quantities-text.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

const at = (seconds: number | undefined): string => (seconds === undefined ? '-' : timeText(seconds * 1000))
const rowOf = (file: StoredFile): string[] => [
  file.id,
  sizeText(file.bytes),
  file.purpose,
  at(file.created_at),
  at(file.expires_at),
  printable(file.filename),
]
const columns = ['id', 'size', 'purpose', 'created', 'expires', 'name']

/** `infer file …`: stored files of the server on this machine, or of the server at INFER_URL. */
export function define(command: Command, terminal: Terminal): void {
  const upload = withCommon(command.command('upload'))
    .summary('upload files, and print their ids')
    .description('Uploads files and prints the id of each. A large file is sent in parts. - is standard input.')
    .argument('<files...>', 'paths, or - for standard input')
    .addOption(new Option('--purpose <purpose>', 'what they are for').choices(uploadPurposes).default('user_data'))
    .option('--name <name>', 'name of the file; default: that of the path')
    .option('--expires <time>', 'delete it after this time, 1h to 30d; default: never, for a batch 30d', readDuration)
    .action(async (paths, { json, dataDir, ...options }) => {
      if (paths.length > 1 && options.name !== undefined)
        throw usageFailure('--name names one file. Upload one at a time.')
      if (paths.filter(path => path === '-').length > 1) throw usageFailure('Standard input can be uploaded once.')
      const client = openClient(dataDir)
      await interruptible(terminal, async signal => {
        for (const path of paths) {
          const file = await uploadFile(client, path, { ...options, terminal, signal })
          if (json) terminal.json(file)
          else {
            terminal.print(file.id)
            terminal.remark(`Uploaded ${printable(file.filename)}, ${sizeText(file.bytes)}.`)
          }
        }
      })
    })
  withExamples(upload, [
    ['infer file upload requests.jsonl --purpose batch', 'the requests of a batch'],
    ['tar c notes | infer file upload - --name notes.tar', 'from a pipe'],
  ])

  const list = withCommon(command.command('list'))
    .summary('list files, newest first')
    .description('Lists uploaded files and results of batches, newest first.')
    .addOption(new Option('--purpose <purpose>', 'only those for this purpose').choices(apiPurposes))
    .option('--limit <count>', 'at most this many', readCount(1, 10_000), 100)
    .action(async ({ json, dataDir, purpose, limit }) => {
      const { data, has_more } = await dataOf(
        openClient(dataDir).api.GET('/std/v1/files', { params: { query: { purpose, limit } } }),
      )
      if (json) return terminal.json({ files: data, has_more })
      terminal.table(columns, data.map(rowOf), { optional: ['expires', 'created', 'purpose'] })
      if (has_more) terminal.remark(`There are more. See: infer file list --limit ${Math.min(10_000, limit * 10)}`)
    })
  withExamples(list, [['infer file list --purpose batch_output', 'results of batches']])

  const show = withCommon(command.command('show'))
    .summary('show a file')
    .description('Shows name, size, purpose and expiry of a file.')
    .argument('<id>', 'file-…')
    .action(async (id, { json, dataDir }) => {
      const file = await fileOf(openClient(dataDir), id)
      if (json) terminal.json(file)
      else terminal.table(columns, [rowOf(file)], { optional: ['expires', 'created', 'purpose'] })
    })
  withExamples(show, [['infer file show file-…', 'infer file list shows the ids']])

  const download = withCommon(command.command('download'))
    .summary('download a file')
    .description('Downloads a file and prints the path. Never replaces an existing file without --force.')
    .argument('<id>', 'file-…')
    .argument('[out]', 'a file or folder, or - for standard output; default: its name, in this folder')
    .option('--force', 'replace an existing file')
    .action(async (id, out, { json, dataDir, force }) => {
      if (out === '-' && json) throw usageFailure('--json and - both write to standard output. Remove one.')
      await interruptible(terminal, async signal => {
        const saved = await downloadFile(openClient(dataDir), id, { out, force: force === true, terminal, signal })
        if (saved === undefined) return
        terminal.result(json, { path: saved }, saved)
      })
    })
  withExamples(download, [
    ['infer file download file-… results.jsonl', 'to a file'],
    ['infer file download file-… - | jq .custom_id', 'to a pipe'],
  ])

  const remove = withCommon(command.command('delete'))
    .summary('delete files')
    .description('Deletes files. A file that an unfinished batch needs is kept, and the command fails.')
    .argument('<ids...>', 'file-…')
    .action(async (ids, { json, dataDir }) => {
      const client = openClient(dataDir)
      for (const id of ids) {
        const deleted = await dataOf(client.api.DELETE('/std/v1/files/{id}', { params: { path: { id } } }))
        terminal.result(json, deleted, `Deleted ${deleted.id}.`)
      }
    })
  withExamples(remove, [['infer file delete file-…', 'infer file list shows the ids']])
  withExamples(command, [
    ['infer file upload notes.md', 'prints the id'],
    ['infer file list', 'what is stored'],
  ])
}
