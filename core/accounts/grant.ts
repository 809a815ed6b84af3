import { Failure } from '../failure.ts'
import { type Scope, scopes } from '../store/store.ts'
import { type Caller, modelAllowed } from './accounts.ts'

/** What a caller may give to another token: nothing that he lacks himself, or every token could make itself a better one. */
type Granter = Pick<Caller, 'scopes'> & { token: Pick<Caller['token'], 'models'> }

/** The scopes, each once. Throws Failure `invalid_scope`, and `insufficient_scope` for one that the giver lacks. */
export function grantScopes(wanted: readonly string[], granter: Granter): Scope[] {
  const unknown = wanted.find(scope => !(scopes as readonly string[]).includes(scope))
  if (unknown !== undefined)
    throw new Failure(
      'invalid_scope',
      `There is no scope '${unknown.slice(0, 60)}'. There are: ${scopes.join(', ')}.`,
      { param: 'scopes' },
    )
  const lacking = (wanted as Scope[]).find(scope => !granter.scopes.includes(scope))
  if (lacking)
    throw new Failure(
      'insufficient_scope',
      `This token lacks the scope ${lacking}, so it cannot give it to another one.`,
      { param: 'scopes', facts: { required_scope: lacking } },
    )
  return [...new Set(wanted as Scope[])]
}

/**
 * The patterns of models; null is all of them. Throws Failure `model_not_allowed` where they reach further than the
 * giver's own. Ids hold no `*`, so a pattern that matches another one as a text is matched by all that the other matches.
 */
export function grantModels(wanted: readonly string[] | null, granter: Granter): string[] | null {
  const own = granter.token.models
  if (own !== null && (wanted === null || wanted.some(pattern => !modelAllowed(own, pattern))))
    throw new Failure(
      'model_not_allowed',
      `This token may use ${own.map(pattern => `'${pattern}'`).join(', ')} only, so it cannot give more to another one.`,
      { param: 'models' },
    )
  return wanted === null ? null : [...wanted]
}
