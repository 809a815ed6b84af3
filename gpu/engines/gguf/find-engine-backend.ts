import { dataDirectory } from '../../../core/config.ts'
import { invalid } from '../../../core/failure.ts'
import type { Log } from '../../../core/log.ts'
import { probeWrapper } from '../../sandbox/probe-wrapper.ts'
import { type BackendReport, backendNames, bestOf, useOf } from './backend.ts'
import { backendsFolder, searchBackends } from './backend-search.ts'
import { findCards } from './find-cards.ts'
import type { GpuUse } from './options.ts'

/**
 * Chooses the backend of an engine that was started by hand: the requested one after a trial, or the best one that
 * works, with the CPU as fallback. If a folder is given too, the caller (the server) has already tried the backend.
 * Throws Failure `invalid_value` if the requested backend does not work here.
 */
export async function findEngineBackend(
  gpu: GpuUse,
  backends: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
  log: Log,
): Promise<{ gpu: Exclude<GpuUse, 'auto'>; backends?: string }> {
  if (gpu === 'off') return { gpu }
  if (gpu !== 'auto' && backends !== undefined) return { gpu, backends }
  const reports: BackendReport[] = []
  const names = backendNames.filter(name => useOf[name] !== 'off' && (gpu === 'auto' || useOf[name] === gpu))
  const { wrapper } = await probeWrapper(environment)
  const search = { folder: backends ?? backendsFolder(dataDirectory(), environment), environment, wrapper }
  const { devices } = await findCards(search)
  for await (const report of searchBackends({ ...search, devices, names })) {
    reports.push(report)
    if (report.state === 'works') break
    if (report.state === 'fails')
      log.warn('A backend does not work here', { backend: report.name, reason: report.detail })
  }
  const best = bestOf(reports)
  if (best) return { gpu: useOf[best.name], backends: best.folder ?? undefined }
  if (gpu === 'auto') return { gpu: 'off' }
  const why = reports.map(({ name, detail, advice }) => `${name}: ${detail}.${advice ? ` ${advice}` : ''}`).join(' ')
  throw invalid('gpu', `The backend ${gpu} does not work here. ${why}`)
}
