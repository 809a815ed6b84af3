import { join } from 'node:path'
import { dataDirectory } from '../../../core/config.ts'
import { Failure } from '../../../core/failure.ts'
import type { Log } from '../../../core/log.ts'
import { discover } from '../../devices/discover.ts'
import { probeWrapper } from '../../sandbox/probe-wrapper.ts'
import { type BackendReport, backendNames, bestOf, useOf } from './backend.ts'
import { searchBackends } from './backend-search.ts'
import type { GpuUse } from './options.ts'

/** The folder of GPU builds: INFER_BACKENDS_DIR, or `backends` in the data directory. */
export const backendsFolder = (dataDir: string, environment: Readonly<Record<string, string | undefined>>): string =>
  environment.INFER_BACKENDS_DIR || join(dataDir, 'backends')

/**
 * Chooses the backend of an engine that was started by hand: the requested one after a trial, or the best one that
 * works, with the CPU as fallback. If a folder is given too, the caller (the server) has already tried the backend.
 * Throws Failure `invalid_value` if the requested backend does not work here.
 */
export async function chooseBackend({
  gpu,
  backends,
  environment,
  log,
}: {
  gpu: GpuUse
  backends: string | undefined
  environment: Readonly<Record<string, string | undefined>>
  log: Log
}): Promise<{ gpu: Exclude<GpuUse, 'auto'>; backends?: string }> {
  if (gpu === 'off') return { gpu }
  if (gpu !== 'auto' && backends !== undefined) return { gpu, backends }
  const reports: BackendReport[] = []
  const names = backendNames.filter(name => useOf[name] !== 'off' && (gpu === 'auto' || useOf[name] === gpu))
  const search = {
    folder: backends ?? backendsFolder(dataDirectory(), environment),
    devices: (await discover({ environment })).devices,
    environment,
    wrapper: (await probeWrapper(environment)).wrapper,
    names,
  }
  for await (const report of searchBackends(search)) {
    reports.push(report)
    if (report.state === 'works') break
    if (report.state === 'fails')
      log.warn('A backend does not work here', { backend: report.name, reason: report.detail })
  }
  const best = bestOf(reports)
  if (best) return { gpu: useOf[best.name], ...(best.folder !== null && { backends: best.folder }) }
  if (gpu === 'auto') return { gpu: 'off' }
  const why = reports.map(({ name, detail, advice }) => `${name}: ${detail}.${advice ? ` ${advice}` : ''}`).join(' ')
  throw new Failure('invalid_value', `The backend ${gpu} does not work here. ${why}`, { param: 'gpu' })
}
