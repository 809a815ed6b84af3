import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hostEnvironment } from '../../core/config.ts'
import { readConfig } from '../../core/models/config.ts'
import { behindProxy } from '../../core/models/hub/proxy.ts'
import { hubSettings } from '../../core/models/hub/settings.ts'
import { findCatalogModel, starterName } from '../../core/models/model-catalog/model-catalog.ts'
import { packageIndex } from '../../core/models/package-index/find-package-file.ts'
import { runningServer } from '../client/find-server.ts'
import type { OwnCommand } from '../serve/try-next.ts'
import { failureOfThrown } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { confirm } from '../terminal/standard-input.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addByName } from './add.ts'

/** The file in the data directory that records that the user declined the offer. */
const declinedFile = 'starter-declined'

/** Maximum time for which a start waits for a network. Milliseconds. */
const reachWithinMs = 2_500

/**
 * Offers the starter model when a user starts a server that has only toy models. Asks once: a "no" is stored in the
 * data directory. Without a network, or when the download fails, the server starts with the toy models. Resolves with
 * whether to start the server; false after Ctrl-C.
 */
export async function offerStarter(
  { dataDir, configPath, own }: { dataDir: string; configPath: string | undefined; own: OwnCommand },
  terminal: Terminal,
): Promise<boolean> {
  if (!terminal.interactive || !shouldOffer(dataDir, configPath)) return true
  let starts = false
  await interruptible(terminal, async signal => {
    await offer({ dataDir, configPath, later: own.line(`model add ${starterName}`) }, terminal, signal)
    signal.throwIfAborted()
    starts = true
  })
  return starts
}

/** Whether only toy models are configured, and the user has not decided yet. */
function shouldOffer(dataDir: string, configPath: string | undefined): boolean {
  if (existsSync(join(dataDir, declinedFile)) || runningServer(dataDir)) return false
  try {
    const { models, toys } = readConfig(configPath ?? join(dataDir, 'infer.yaml'), configPath !== undefined)
    return models.length === 0 && toys === undefined
  } catch {
    // The start itself reports the error in the file.
    return false
  }
}

async function offer(
  { dataDir, configPath, later }: { dataDir: string; configPath: string | undefined; later: string },
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  const model = findCatalogModel(starterName)!
  try {
    const hub = hubSettings(hostEnvironment())
    if (hub.offline) return
    const [build] = model.builds
    const other = model.builds.find(one => one.package !== undefined)!.package!
    terminal.waiting('Checking the network, to offer a small real model')
    const index = usableIndex()
    const [hubAnswers, indexAnswers] = await behindProxy(hostEnvironment(), () =>
      Promise.all([
        answers(`${hub.endpoint}/api/models/${build!.repository}/revision/main`, signal),
        index !== undefined && answers(`${index}/${other.name}/`, signal),
      ]),
    )
    terminal.progress('')
    signal.throwIfAborted()
    if (!hubAnswers && !indexAnswers)
      return terminal.remark(`No model hub can be reached, so the server starts with its toy models. Later: ${later}`)
    const bytes = hubAnswers ? (build!.bytes ?? other.bytes) : other.bytes
    const { host } = new URL(hubAnswers ? hub.endpoint : index!)
    const what = `${model.title}, ${sizeText(bytes)}, ${model.license}, from ${host}`
    terminal.print(
      'Only the toy models are configured. They always give the same answers. A small real chat model is available.',
    )
    if (!(await confirm(`Download ${what}?`, true, terminal, signal))) {
      mkdirSync(dataDir, { recursive: true, mode: 0o700 })
      writeFileSync(
        join(dataDir, declinedFile),
        'The starter model was declined. Remove this file to be asked again.\n',
      )
      return terminal.remark(`The server starts with its toy models. Later: ${later}`)
    }
    await addByName(
      starterName,
      { dataDir, config: configPath, yes: true, withoutQuestion: true, isStarting: true },
      terminal,
      signal,
    )
  } catch (thrown) {
    signal.throwIfAborted()
    terminal.progress('')
    terminal.warn(`${failureOfThrown(thrown).message}\nThe server starts with its toy models. Try again with: ${later}`)
  }
}

/** The package index; undefined if its address cannot be used, because the hub may have the model nevertheless. */
function usableIndex(): string | undefined {
  try {
    return packageIndex(hostEnvironment())
  } catch {
    return undefined
  }
}

/** Whether a URL answers with 2xx in time. */
async function answers(address: string, signal: AbortSignal): Promise<boolean> {
  try {
    const response = await fetch(address, { signal: AbortSignal.any([signal, AbortSignal.timeout(reachWithinMs)]) })
    await response.body?.cancel()
    return response.ok
  } catch {
    return false
  }
}
