import { preferredQuantizations } from '../../core/models/hub/choose.ts'
import type { CatalogBuild, CatalogModel } from '../../core/models/model-catalog/catalog-model.ts'
import { weightBytes } from '../../gpu/catalog-shape.ts'
import { type Fit, fitOf, grades, type MachineFacts } from './catalog-fit.ts'

/** The build of a catalog model for this machine. */
export interface BuildChoice {
  build: CatalogBuild
  fit: Fit
  /** Why this one, as a sentence. */
  why: string
}

/** Weights take at most this part of the GPU where there is a choice: other models are to fit beside it. */
const halfOfGpu = 0.5

/**
 * Chooses engine and quantization by what fits this machine. The engine with the best fit, the catalog's order breaking
 * ties; on a GPU the best quality that leaves half of it free, else the best that fits; on a processor the usual
 * quantization, because it reads all weights for each token. `engine` allows only that one. Undefined when the catalog
 * has no build for the engine.
 */
export function chooseBuild(
  model: CatalogModel,
  machine: MachineFacts,
  { engine }: { engine?: string | undefined } = {},
): BuildChoice | undefined {
  const choices = model.builds
    .filter(build => build.package === undefined && (engine === undefined || build.engine === engine))
    .map(build => ({ build, fit: fitOf(model, build, machine), bytes: weightBytes(model, build) ?? 0 }))
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
  if (rivals.length === 1) return choose(first, 'the only one that fits this machine so well.')
  if (first.fit.grade !== 'gpu')
    return choose(
      usual[0]!,
      first.fit.grade === 'no' || first.fit.grade === 'missing'
        ? 'the usual one.'
        : 'a processor reads all weights for each token, so that a smaller file answers faster.',
    )
  const capacity = machine.targets[first.build.engine!].capacity * first.fit.devices
  const halfFree = quality.find(({ bytes }) => bytes <= capacity * halfOfGpu)
  if (halfFree) return choose(halfFree, 'the best quality that leaves half of the GPU to other models.')
  const long = quality.find(({ fit }) => fit.context !== null && fit.context >= contextWanted(model, longContext))
  return long
    ? choose(long, `the best quality of which all layers fit the GPU with a context of ${long.fit.context} tokens.`)
    : choose(quality[0]!, 'the best quality of which all layers fit the GPU.')
}

/** Tokens of one request that a good fit leaves memory for, unless the model was trained for fewer. */
const usualContext = 4096
/** The same where a smaller quantization would make it possible. */
const longContext = 8192

const contextWanted = (model: CatalogModel, tokens: number): number => Math.min(tokens, model.context ?? tokens)

/** Where a fit stands among others, the best first: by its grade, and within one a fit with a short context last. */
export const rankOf = (model: CatalogModel, { grade, context }: Fit): number =>
  grades.indexOf(grade) +
  (context !== null && context < contextWanted(model, Math.min(usualContext, encoderContext(model))) ? 0.5 : 0)

/** Texts that are made vectors of or ranked are shorter than chats. */
const encoderContext = ({ kind }: CatalogModel): number =>
  kind === 'embedding' || kind === 'rerank' ? 2048 : Number.POSITIVE_INFINITY

function preference({ quantization }: CatalogBuild): number {
  const names: readonly string[] = preferredQuantizations
  const at = names.indexOf(quantization ?? '')
  return at < 0 ? names.indexOf('F16') - 0.5 : at
}
