import { Failure } from '../failure.ts'
import { type Scope, scopes } from '../store/store.ts'
import type { Caller } from './accounts.ts'
import { modelAllowed } from './model-allowed.ts'

/**
 * The caller who creates or changes a token: he may not grant rights that he lacks, or every token could extend itself.
 */
type Granter = Pick<Caller, 'scopes'> & { token: Pick<Caller['token'], 'models'> }

/**
 * Returns the scopes, each once. Throws Failure `invalid_scope`, and `insufficient_scope` for a scope that the granter
 * lacks.
 */
export function grantScopes(requested: readonly string[], granter: Granter): Scope[] {
  const unknown = requested.find(scope => !(scopes as readonly string[]).includes(scope))
  if (unknown !== undefined)
    throw new Failure(
      'invalid_scope',
      `There is no scope '${unknown.slice(0, 60)}'. There are: ${scopes.join(', ')}.`,
      { param: 'scopes' },
    )
  const lacking = (requested as Scope[]).find(scope => !granter.scopes.includes(scope))
  if (lacking)
    throw new Failure(
      'insufficient_scope',
      `This token lacks the scope ${lacking}, so it cannot grant it to another token.`,
      { param: 'scopes', facts: { required_scope: lacking } },
    )
  return [...new Set(requested as Scope[])]
}

/**
 * Returns the model patterns; null is all models. Throws Failure `model_not_allowed` if they allow more than the
 * granter's own. Ids contain no `*`, so a pattern that matches another pattern as text also matches all ids that the
 * other one matches.
 */
export function grantModels(requested: readonly string[] | null, granter: Granter): string[] | null {
  const own = granter.token.models
  if (own !== null && (requested === null || requested.some(pattern => !modelAllowed(own, pattern))))
    throw new Failure(
      'model_not_allowed',
      `This token may use ${own.map(pattern => `'${pattern}'`).join(', ')} only, so it cannot grant other models to another token.`,
      { param: 'models' },
    )
  return requested === null ? null : [...requested]
}
