import { preferredQuantizations } from '../../core/models/hub/choose.ts'
import type { CatalogBuild, CatalogModel } from '../../core/models/model-catalog/catalog-model.ts'
import { weightBytes } from '../../gpu/estimate/catalog-shape.ts'
import { type Fit, fitOf, grades, type MachineFacts } from './catalog-fit.ts'

/** The build of a catalog model for this machine. */
export interface BuildChoice {
  build: CatalogBuild
  fit: Fit
  /** Why this one, as a sentence. */
  why: string
}

/** If possible, weights use at most this part of the GPU, so that other models fit beside them. */
const halfOfGpu = 0.5

/**
 * Chooses the engine and quantization that fit this machine best; the catalog's order breaks ties. On a GPU chooses the
 * best quality that leaves half of it free, else the best that fits. On a processor chooses the usual quantization,
 * because the processor reads all weights for each token. `engine` restricts the choice, and
 * `context` is the maximum tokens of a request. Undefined when the catalog has no build for that engine.
 */
export function chooseBuild(
  model: CatalogModel,
  machine: MachineFacts,
  { engine, context }: { engine?: string | undefined; context?: number | undefined } = {},
): BuildChoice | undefined {
  const choices = model.builds
    .filter(build => build.package === undefined && (engine === undefined || build.engine === engine))
    .map(build => ({ build, fit: fitOf(model, build, machine, context), bytes: weightBytes(model, build) ?? 0 }))
  const rank = ({ fit }: (typeof choices)[number]) => rankOf(model, fit)
  const [first] = choices.toSorted((a, b) => rank(a) - rank(b))
  if (!first) return undefined
  const rivals = choices.filter(
    other =>
      other.build.engine === first.build.engine &&
      rank(other) === rank(first) &&
      other.fit.devices === first.fit.devices,
  )
  const quality = rivals.toSorted((a, b) => b.bytes - a.bytes)
  const usual = rivals.toSorted((a, b) => preference(a.build) - preference(b.build))
  const choose = ({ build, fit }: (typeof choices)[number], why: string): BuildChoice => ({
    build,
    fit,
    why: `${build.quantization ?? 'full precision'}: ${why}`,
  })
  if (choices.filter(({ build }) => build.engine === first.build.engine).length === 1)
    return choose(first, 'the only one in the catalog for this engine.')
  if (rivals.length === 1) return choose(first, 'no other quantization fits this machine as well.')
  if (first.fit.grade !== 'gpu')
    return choose(
      usual[0]!,
      first.fit.grade === 'no' || first.fit.grade === 'missing'
        ? 'the usual one.'
        : 'a processor reads all weights for each token, so a smaller file answers faster.',
    )
  const capacity = machine.targets[first.build.engine!].capacity * first.fit.devices
  const halfFree = quality.find(({ bytes }) => bytes <= capacity * halfOfGpu)
  if (halfFree) return choose(halfFree, 'the best quality that leaves half of the GPU for other models.')
  const long = quality.find(({ fit }) => fit.context !== null && fit.context >= desiredContext(model, longContext))
  return long
    ? choose(long, `the best quality whose layers all fit on the GPU with a context of ${long.fit.context} tokens.`)
    : choose(quality[0]!, 'the best quality whose layers all fit on the GPU.')
}

/** Context that a good fit must have memory for, in tokens, unless the model was trained for less. */
const usualContext = 4096
/** Preferred context, in tokens, if a smaller quantization makes it possible. */
const longContext = 8192

const desiredContext = (model: CatalogModel, tokens: number): number => Math.min(tokens, model.context ?? tokens)

/** Returns the rank of a fit, lowest first: by its grade, and within a grade fits with a short context last. */
export const rankOf = (model: CatalogModel, { grade, context }: Fit): number =>
  grades.indexOf(grade) +
  (context !== null && context < desiredContext(model, Math.min(usualContext, encoderContext(model))) ? 0.5 : 0)

/** Texts to embed or rerank are shorter than chats. */
const encoderContext = ({ kind }: CatalogModel): number =>
  kind === 'embedding' || kind === 'rerank' ? 2048 : Number.POSITIVE_INFINITY

function preference({ quantization }: CatalogBuild): number {
  const names: readonly string[] = preferredQuantizations
  const at = names.indexOf(quantization ?? '')
  return at < 0 ? names.indexOf('F16') - 0.5 : at
}
