import type { Command } from '@commander-js/extra-typings'
import { hostEnvironment } from '../../core/config.ts'
import { Failure } from '../../core/failure.ts'
import { parseHubReference } from '../../core/models/hub/reference.ts'
import { hubSettings } from '../../core/models/hub/settings.ts'
import { findProgram } from '../../gpu/sandbox/program.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { openPullDisplay, withDownload, withTokenFile } from './pull.ts'

/** `infer model fetch <reference> [-- command]`: brings the files of a model to a node, then becomes its engine. */
export function define(command: Command, terminal: Terminal): void {
  const fetch = withTokenFile(command)
    .summary('bring a model to a node, then start its engine')
    .description(
      'The first step of a job on a node: uses the files of a model where a shared folder or the cache has them, for which it needs no network; else downloads them once, also if several engines start at the same time, resumed and verified. Then becomes the command after --, in which the folder of --at is replaced by that of the download. Without a command prints the folder. Pools use it with model_cache in infer.yaml.',
    )
    .argument('<reference>', 'hf:owner/name or hf:owner/name@revision')
    // The words after --, which would be too long in the list of the commands.
    .allowExcessArguments()
    .option('--file <path...>', 'exactly these files of the repository; default: those that infer model pull chooses')
    .option('--at <folder>', 'the folder models--owner--name of a shared cache that may have them')
    .option('--cache <folder>', 'the cache for downloads; default: the one that all tools of the hub share')
    .option('--json', 'print events, one JSON object per line')
    .action(async (text, { tokenFile, file: names, at, cache, json = false }) => {
      const words = fetch.args.slice(1)
      const settings = hubSettings(hostEnvironment(), { tokenFile })
      const hub = cache === undefined ? settings : { ...settings, cache }
      const reference = parseHubReference(text, hub.endpoint)
      if (!reference)
        throw usageFailure(`'${text}' is not a hub reference. Write hf:owner/name or hf:owner/name@revision.`)
      const { fetchModel } = await import('../../core/models/hub/fetch.ts')
      await interruptible(terminal, async signal => {
        const onEvent = openPullDisplay(terminal, json)
        const run = () => fetchModel(reference, { hub, signal, onEvent, at, names })
        const fetched = await withDownload(terminal, signal, run)
        const { folder, present } = fetched
        if (json) terminal.stdout.write(`${JSON.stringify({ event: 'done', ...fetched })}\n`)
        else terminal.remark(present ? `The files are in ${folder}.` : `Complete and verified: ${folder}`)
        if (words.length === 0) return void (json || terminal.print(folder))
        becomes(at === undefined ? words : words.map(word => movedPaths(word, at, folder)), hub.cache)
      })
    })
  withExamples(fetch, [
    ['infer model fetch hf:Qwen/Qwen3-8B --cache /scratch', 'once on this node'],
    ['infer model fetch hf:o/m --cache /scratch -- vllm serve o/m', 'and then its engine'],
  ])
}

/** A word of the command with each path at or below a folder at the new folder instead. */
export const movedPaths = (word: string, from: string, to: string): string =>
  word.split(from).reduce((done, rest) => `${done}${/^($|[/:,"'\s])/.test(rest) ? to : from}${rest}`)

/** Replaces this process by the command, so that signals and the exit status need no forwarding. */
function becomes(words: readonly string[], cache: string): never {
  const environment: NodeJS.ProcessEnv = { ...hostEnvironment(), HF_HUB_CACHE: cache, HF_HUB_OFFLINE: '1' }
  const program = findProgram(words[0]!, environment.PATH ?? '')
  if (program === undefined)
    throw new Failure('worker_error', `The program '${words[0]}' is not installed here, or not on PATH.`)
  return process.execve!(program, words, environment)
}
