import type { SandboxLevel } from '../../core/schemas/sandbox-level.ts'
import { effectiveLevel, type SandboxSupport, sandboxLimits } from '../../gpu/sandbox/level.ts'
import { broken, type Finding, fine, warning } from './finding.ts'

/** A model whose engine this machine starts, and the sandbox level that it should have. */
export interface SandboxedModel {
  id: string
  level: SandboxLevel
  /** Whether its configuration names the level. */
  required: boolean
}

const advice =
  'Install bubblewrap (or util-linux) and allow user namespaces, or run infer as root. In a container, allow them there.'

/**
 * Reports the sandbox level of each model, and the limits of the level. A level that the configuration requires
 * and that cannot be enforced is `broken`, because the model is unavailable. Pure.
 */
export function checkSandbox(support: SandboxSupport, models: readonly SandboxedModel[]): Finding {
  const name = 'engine sandbox'
  const unavailable = models.filter(
    ({ level, required }) => required && effectiveLevel(level, support).missing !== null,
  )
  if (unavailable.length > 0) {
    const missing = unavailable.map(({ id, level }) => `${id}: '${level}' ${effectiveLevel(level, support).missing}`)
    return broken(name, `not available: ${missing.join('; ')}`, `${advice} Or change 'sandbox' in infer.yaml.`)
  }
  if (support.tool === null)
    return warning(name, `no sandbox works here (${support.why}): ${sandboxLimits.none}`, advice)
  const inForce = (level: SandboxLevel) =>
    models.filter(model => effectiveLevel(model.level, support).level === level).map(({ id }) => id)
  const levels = (['strict', 'files', 'none'] as const).flatMap(level => {
    const ids = inForce(level)
    return ids.length === 0 ? [] : [`'${level}' applies to ${ids.join(', ')}: ${sandboxLimits[level]}`]
  })
  const { userNamespace, ownProc, network } = support.tool
  const remarks = [
    ...(userNamespace ? [] : ['engines run as root, as infer does, but without most privileges']),
    ...(ownProc ? [] : ['engines see the names and command lines of all processes']),
  ]
  const detail = [support.tool.name, ...remarks, ...levels].join('; ')
  return network
    ? fine(name, detail)
    : warning(
        name,
        `${detail}; network namespaces do not work here, so 'files' is the strictest level that can be enforced`,
        advice,
      )
}

/** `missing`: a sentence for each configured path that does not exist. Pure. */
export function checkSandboxPaths(missing: readonly string[]): Finding {
  const name = 'sandbox paths'
  if (missing.length === 0) return fine(name, 'none is missing')
  return warning(name, missing.join(' '), 'Running engines see a new path after their next start.')
}
