import type { Command, OptionValues } from '@commander-js/extra-typings'
import { hostEnvironment } from '../../core/config.ts'
import { behindProxy } from '../../core/models/hub/proxy.ts'
import type { PullEvent, Pulled } from '../../core/models/hub/pull.ts'
import { parseHubReference } from '../../core/models/hub/reference.ts'
import { hubSettings } from '../../core/models/hub/settings.ts'
import { refuseRemote } from '../client/find-server.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { withExamples } from '../terminal/options.ts'
import { lengthText, sizeText } from '../terminal/quantities-text.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

export const withTokenFile = <Args extends unknown[], Options extends OptionValues>(command: Command<Args, Options>) =>
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
    .action(async (text, { tokenFile, json = false }) => {
      refuseRemote(
        command,
        'downloads to this machine',
        `. To let that server download and offer it: infer model add ${text}`,
      )
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

/** Minimum time between updates on a terminal and with `--json`. Milliseconds. */
const drawEveryMs = 100
const jsonEveryMs = 1_000
/** In a pipe, one line per tenth of a file. */
const parts = 10
/** The rate is averaged over this time, short enough to follow changes and long enough not to flicker. Milliseconds. */
const rateOverMs = 5_000
const barWidth = 24

/** Progress of the current file. */
interface Progress {
  file: string
  bytes: number
  total: number
  /** Bytes per second; undefined while unknown. */
  rate: number | undefined
}

/** Draws one line: `m.gguf ━━━━━━━━────── 45 %  1.2 GiB of 2.6 GiB  34 MiB/s  42 s left`. */
export function pullProgressLine({ file, bytes, total, rate }: Progress, width: number): string {
  const part = total === 0 ? 1 : bytes / total
  const filled = Math.floor(part * barWidth)
  const bar = '━'.repeat(filled) + '─'.repeat(barWidth - filled)
  const facts = [`${bar} ${String(Math.floor(part * 100)).padStart(3)} %`, `${sizeText(bytes)} of ${sizeText(total)}`]
  if (rate !== undefined) facts.push(`${sizeText(rate)}/s`)
  if (rate !== undefined && rate > 0 && bytes < total) facts.push(`${lengthText((total - bytes) / rate)} left`)
  // The name is cut first, because the facts after it matter more.
  const room = width - facts.join('  ').length - 2
  const name = printable(file).split('/').at(-1)!
  if (room < 8) return facts.join('  ').slice(0, Math.max(0, width - 1))
  return [name.length > room ? `${name.slice(0, room - 1)}…` : name, ...facts].join('  ')
}

/**
 * Shows a download: one live line on a terminal, a line per tenth in a pipe, one JSON object per line with `--json`.
 * `now` is any clock in milliseconds.
 */
export function openPullDisplay(terminal: Terminal, asJson: boolean, now: () => number = () => performance.now()) {
  const sizes = new Map<string, number>()
  const isLive = !asJson && terminal.stderr.isTTY
  let samples: { at: number; bytes: number }[] = []
  let shownAt = Number.NEGATIVE_INFINITY
  let shownPart = 0

  const begin = () => {
    samples = []
    shownAt = Number.NEGATIVE_INFINITY
    shownPart = 0
  }
  function progress(file: string, bytes: number): void {
    const total = sizes.get(file) ?? bytes
    const at = now()
    samples.push({ at, bytes })
    while (samples.length > 2 && at - samples[0]!.at > rateOverMs) samples.shift()
    const [first] = samples
    const rate = at > first!.at ? ((bytes - first!.bytes) * 1000) / (at - first!.at) : undefined
    const last = bytes === total
    if (asJson) {
      if (at - shownAt < jsonEveryMs && !last) return
      write({
        event: 'progress',
        file,
        bytes,
        total_bytes: total,
        bytes_per_second: rate === undefined ? null : Math.round(rate),
      })
    } else if (isLive) {
      if (at - shownAt < drawEveryMs && !last) return
      terminal.progress(pullProgressLine({ file, bytes, total, rate }, terminal.stderr.columns || 80))
    } else {
      const part = total === 0 ? parts : Math.floor((bytes / total) * parts)
      if (part <= shownPart) return
      shownPart = part
      terminal.remark(`${printable(file)}: ${part * (100 / parts)} % of ${sizeText(total)}`)
    }
    shownAt = at
  }
  const write = (value: object) => terminal.stdout.write(`${JSON.stringify(value)}\n`)
  const say = (text: string) => {
    if (isLive) terminal.progress('')
    terminal.remark(text)
  }

  return function show(event: PullEvent): void {
    if (event.event === 'progress') return progress(event.file, event.bytes)
    if (event.event === 'plan') for (const { file, bytes } of event.files) sizes.set(file, bytes)
    if (event.event === 'retry') begin()
    if (asJson) return void write(eventJson(event))
    switch (event.event) {
      case 'connect':
        return terminal.waiting(`Requesting ${printable(event.what)} from ${printable(event.host)}…`)
      case 'plan': {
        const missing = event.files.filter(({ present }) => !present)
        const sum = missing.reduce((all, { bytes }) => all + bytes, 0)
        const what = missing.length === 1 ? printable(missing[0]!.file) : `${missing.length} files`
        if (missing.length > 0) say(`Downloading ${what} (${sizeText(sum)}) from ${printable(event.source)}`)
        if (event.others.length > 0)
          say(
            `Other files: ${printable(event.others.slice(0, 12).join(', '))}${event.others.length > 12 ? ` and ${event.others.length - 12} more` : ''}`,
          )
        return
      }
      case 'wait':
        return say(`Another process is downloading ${printable(event.file)}. Waiting for it.`)
      case 'resume':
        samples = [{ at: now(), bytes: event.bytes }]
        return say(`Resuming ${printable(event.file)} after ${sizeText(event.bytes)}.`)
      case 'retry':
        return say(`${printable(event.reason)} Retrying in ${lengthText(event.waitMs / 1000)}.`)
      case 'file':
        begin()
        if (isLive) terminal.progress('')
        return
    }
  }
}

/** Returns an event for `--json`, with field names in the style of the API. */
function eventJson(event: Exclude<PullEvent, { event: 'progress' }>): object {
  if (event.event !== 'retry') return event
  const { waitMs, ...rest } = event
  return { ...rest, wait_ms: waitMs }
}
