import type { BackendReport } from '../../gpu/engines/gguf/backend.ts'
import { broken, type Finding, fine, warning } from './finding.ts'

/**
 * Judges one llama.cpp backend. Without the CPU backend the built-in engine cannot work at all; a missing GPU backend
 * is a warning only if there is a GPU that no other backend uses. Pure.
 */
export function checkBackend(report: BackendReport, { served }: { served: boolean }): Finding {
  const { name, state, detail, advice } = report
  const title = `backend ${name}`
  if (state === 'works') return fine(title, detail)
  if (name === 'cpu') return broken(title, detail, advice ?? 'Report this with the message above.')
  return advice === null || served ? fine(title, detail) : warning(title, detail, advice)
}
