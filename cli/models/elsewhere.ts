import { existsSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { type FailureCode, failures } from '../../core/failure.ts'
import { type Api, type Client, dataOf, memberOf, openClient } from '../client/client.ts'
import { withCommands } from '../client/refusal.ts'
import { submit } from '../jobs/submit.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { confirm } from '../terminal/standard-input.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type AddOptions, obstructed, requireForce, requireInteractive } from './add.ts'

type AddElsewhereOptions = AddOptions & { withoutQuestion?: boolean }

/** Time between two looks at the progress of a download. Milliseconds. */
const lookEveryMs = 500

/**
 * Adds a model to the server at INFER_URL, which downloads it: a name of the catalog, or a repository of a hub. Follows
 * the download; Ctrl-C cancels it. Throws usage for what only the machine of the server has.
 */
export async function addElsewhere(
  what: string,
  options: AddElsewhereOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  const { json, yes, withoutQuestion, dryRun, force, adapterOf } = options
  const client = openClient(undefined)
  refuseLocalOptions(options, client.url)
  refuseFile(what, adapterOf, client.url)
  requireInteractive(options, terminal)
  const { id, task: tasks, context, concurrency, engine, memory } = options
  const body = { model: what, id, tasks, context, concurrency, engine, memory, adapter_of: adapterOf }
  const proposed = await dataOf(client.api.POST('/api/models', { body: { ...body, dry_run: true }, signal }))
  const proposal = proposed as unknown as Api['ModelProposal']
  if (dryRun && json) return terminal.json(proposal)
  if (!json) showProposal(proposal, client.url, terminal)
  if (dryRun) return
  const { fits } = proposal
  const obstacle = proposal.obstacle === null ? null : withCommands(proposal.obstacle)
  if (obstacle !== null && !fits) requireForce(obstacle, options)
  // What is missing there may be installed later, as on this machine: it needs an answer, but no force.
  const isAsked = !yes && (!withoutQuestion || (obstacle !== null && fits))
  if (isAsked && !terminal.interactive) throw obstructed(obstacle!, '--yes', options)
  if (isAsked && !(await confirm(`Add it to ${client.url}?`, obstacle === null || !fits, terminal, signal)))
    return terminal.remark('Nothing was changed.')

  const accepted = { ...body, force: force || obstacle !== null }
  const begun = await dataOf(client.api.POST('/api/models', { body: accepted, signal }))
  const download = await followDownload(client, begun as Api['ModelDownload'], terminal, signal)
  if (download.status === 'cancelled') throw refused('cancelled', 'The download was cancelled.')
  if (download.status === 'failed') throw failureOf(download)
  terminal.result(
    json,
    { model: { id: download.model_id }, server: client.url, obstacle: proposal.obstacle, advice: proposal.advice },
    `${client.url} offers '${printable(download.model_id ?? what)}'. Test it: infer model test ${download.model_id ?? what}`,
  )
}

/** Throws usage for an option that only the machine of the server has. */
function refuseLocalOptions({ config, tokenFile, comfyui }: AddOptions, url: string): void {
  const local = { config, 'token-file': tokenFile, comfyui }
  const option = Object.entries(local).find(([, value]) => value !== undefined)
  if (option)
    throw usageFailure(
      `--${option[0]} is for the machine of the server, but INFER_URL is set to ${url}. Run the command there, or remove the option.`,
    )
}

/** Throws usage for a model that only the machine of the server has. A LoRA may be there, by its absolute path. */
function refuseFile(what: string, adapterOf: string | undefined, url: string): void {
  if (adapterOf !== undefined && (what.startsWith('/') || what.startsWith('hf:'))) return
  if (adapterOf !== undefined)
    throw usageFailure(
      `'${printable(what)}' is no absolute path. The LoRA must be on the machine of the server, and INFER_URL is set to ${url}: copy it there, and give its absolute path.`,
    )
  if (what.startsWith('hf:') || !(existsSync(what) || /^(comfyui:|\/|\.|~|https?:)|\.(gguf|safetensors)$/.test(what)))
    return
  throw usageFailure(
    `'${printable(what)}' is no name of the catalog or of a hub. A server elsewhere adds only those, and INFER_URL is set to ${url}. Name hf:owner/name, or run the command on that machine.`,
  )
}

function showProposal(proposal: Api['ModelProposal'], url: string, terminal: Terminal): void {
  const { model, memory, obstacle, advice, lines } = proposal
  const { id, engine, adapter } = model as { id?: string; engine?: string; adapter?: { of: string } }
  const facts = [
    engine && `engine ${engine}`,
    adapter && `adapter of ${printable(adapter.of)}`,
    memory !== null && `memory ${sizeText(memory)}`,
  ].filter(Boolean)
  terminal.print([terminal.paint.name(printable(id ?? '')), ...facts].join('  '))
  for (const sentence of obstacle === null ? advice : [obstacle, ...advice]) terminal.warn(withCommands(sentence))
  terminal.print(`\nThis is added to infer.yaml of ${url}:\n`)
  for (const line of lines.added) terminal.print(printable(line))
}

/** Shows the progress until the download has ended, also after a lost connection. Ctrl-C cancels it. */
async function followDownload(
  client: Client,
  begun: Api['ModelDownload'],
  terminal: Terminal,
  signal: AbortSignal,
): Promise<Api['ModelDownload']> {
  const look = ({ api }: Client) => memberOf(api.GET('/api/model-downloads', { signal }), 'downloads')
  let download = begun
  try {
    while (download.status === 'running') {
      await pause(lookEveryMs, undefined, { signal })
      const all = await submit(() => client, look, { signal, onTrouble: text => terminal.waiting(text) })
      const found = all.find(one => one.id === begun.id)
      // A server that was started again has forgotten its downloads.
      if (!found)
        throw refused('worker_error', 'The server knows the download no more. Run the command again: it continues.')
      download = found
      const { file, bytes, total_bytes: total } = download
      const size = total > 0 ? `, ${sizeText(bytes)} of ${sizeText(total)}` : ''
      if (file !== null) terminal.progress(`Downloading ${printable(file)}${size}`)
    }
  } catch (thrown) {
    if (signal.aborted) await client.api.DELETE('/api/model-downloads/{id}', { params: { path: { id: begun.id } } })
    throw thrown
  } finally {
    terminal.progress('')
  }
  return download
}

function failureOf({ error }: Api['ModelDownload']): Error {
  const code = error !== null && Object.hasOwn(failures, error.code) ? (error.code as FailureCode) : 'worker_error'
  return refused(code, withCommands(error?.message ?? 'The server gave no reason. Its log may: infer logs'))
}

interface RemovalOptions {
  yes?: boolean | undefined
  dryRun?: boolean | undefined
  deleteFiles?: boolean | undefined
  json?: boolean | undefined
  config?: string | undefined
}

/** Removes a model from the server at INFER_URL. */
export async function removeElsewhere(
  id: string,
  { yes, dryRun, deleteFiles, json, config }: RemovalOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  const client = openClient(undefined)
  refuseLocalOptions(config === undefined ? {} : { config }, client.url)
  requireInteractive({ yes, json, dryRun }, terminal)
  const removal = async (dry: boolean) => {
    const query = {
      dry_run: dry ? ('true' as const) : undefined,
      delete_files: deleteFiles ? ('true' as const) : undefined,
    }
    return dataOf(client.api.DELETE('/api/models/{id}', { params: { path: { id }, query }, signal }))
  }
  const { lines } = await removal(true)
  if (dryRun) {
    const text = [`This would be removed from infer.yaml of ${client.url}:`, '', ...lines.removed.map(printable)]
    return terminal.result(json, { model_id: id, lines, deleted: [] }, text.join('\n'))
  }
  if (!yes && !(await confirm(`Remove '${printable(id)}' from ${client.url}?`, false, terminal, signal)))
    return terminal.remark('Nothing was changed.')
  const { deleted } = await removal(false)
  terminal.result(
    json,
    { model_id: id, lines, deleted },
    `Removed '${printable(id)}' from ${client.url}.${deleted.length > 0 ? ` Deleted: ${deleted.map(printable).join(', ')}.` : ''}`,
  )
}
