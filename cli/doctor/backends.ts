import type { BackendReport } from '../../gpu/engines/gguf/backend.ts'
import { broken, type Finding, fine, warning } from './finding.ts'

/**
 * What llama.cpp can compute on here, a line for each backend. Without the processor the built-in engine cannot work at
 * all; a backend for cards is only missed where there is a card and no other backend uses it. Pure.
 */
export function checkBackend(report: BackendReport, { served }: { served: boolean }): Finding {
  const { name, state, detail, advice } = report
  const title = `backend ${name}`
  if (state === 'works') return fine(title, detail)
  if (name === 'cpu') return broken(title, detail, advice ?? 'Report this with the message above.')
  return advice === null || served ? fine(title, detail) : warning(title, detail, advice)
}
