import type { Command } from 'commander'
import { hostEnvironment } from '../../core/config.ts'
import { behindProxy } from '../../core/models/hub/proxy.ts'
import type { Pulled } from '../../core/models/hub/pull.ts'
import { parseHubReference } from '../../core/models/hub/reference.ts'
import { hubSettings } from '../../core/models/hub/settings.ts'
import { refuseRemote } from '../client/local-only.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { withExamples } from '../terminal/options.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { openPullDisplay } from './pull-progress.ts'

export const withTokenFile = (command: Command): Command =>
  command.option(
    '--token-file <path>',
    'a file with your hub token; default: HF_TOKEN, else the token that the hub login saved',
  )

/** `infer model pull <reference>`: downloads a model from a hub into the cache that the hub's tools share. */
export function define(command: Command, terminal: Terminal): void {
  const pull = withTokenFile(command)
    .summary('download a model from a hub')
    .description(
      'Downloads a model into the cache that all tools of the hub share (HF_HOME), and prints its path. Resumes interrupted downloads and verifies all files. Without a file name takes Q4_K_M, or the quantization closest to it; of a repository without GGUF files takes the files that an engine reads: of a pipeline of diffusers one variant of the weights. HF_ENDPOINT selects another hub.',
    )
    .argument('<reference>', 'hf:owner/name, hf:owner/name:file.gguf, hf:owner/name:Q8_0, or the URL of its page')
    .option('--json', 'print events, one JSON object per line')
    .action(async (text: string, { tokenFile, json = false }: { tokenFile?: string; json?: boolean }) => {
      refuseRemote(command, 'downloads to this machine')
      const hub = hubSettings(hostEnvironment(), { tokenFile })
      const reference = parseHubReference(text, hub.endpoint)
      if (!reference)
        throw usageFailure(
          `'${text}' is not a hub reference. Write hf:owner/name, or add it directly: infer model add ${text}`,
        )
      const { pullModel } = await import('../../core/models/hub/pull.ts')
      await interruptible(terminal, async signal => {
        const onEvent = openPullDisplay(terminal, json)
        const pulled = await withDownload(terminal, signal, () => pullModel(reference, { hub, signal, onEvent }))
        if (json) terminal.stdout.write(`${JSON.stringify({ event: 'done', ...jsonOf(pulled) })}\n`)
        else {
          const fetched = pulled.files.filter(({ present }) => !present)
          const bytes = fetched.reduce((sum, file) => sum + file.bytes, 0)
          const done = fetched.length > 0 ? `Complete and verified: ${sizeText(bytes)}.` : 'All files are already here.'
          terminal.remark(`${done} Offer it with: infer model add ${text}`)
          terminal.print(pulled.path)
        }
      })
    })
  withExamples(pull, [
    ['infer model pull hf:Qwen/Qwen3-8B-GGUF', 'the best file for most machines'],
    ['infer model pull hf:Qwen/Qwen3-8B-GGUF:Q8_0', 'another quantization'],
    ['infer model pull hf:owner/name@v1.0:file.gguf', 'one file of one revision'],
    ['infer model pull hf:owner/name --token-file ~/hub-token', 'a gated model'],
  ])
}

/** Runs a download, through a proxy if one is configured. When it is stopped, prints that it can be resumed. */
export async function withDownload<T>(terminal: Terminal, signal: AbortSignal, run: () => Promise<T>): Promise<T> {
  try {
    return await behindProxy(hostEnvironment(), run)
  } catch (thrown) {
    terminal.progress('')
    if (signal.aborted) terminal.remark('Stopped. The downloaded part is kept: run the same command to resume.')
    throw thrown
  }
}

const jsonOf = ({ kind, path, files, others, commit, repository }: Pulled): object => ({
  kind,
  path,
  repository,
  commit,
  files,
  others,
})
