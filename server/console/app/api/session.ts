import { createContext, useContext } from 'react'
import { send } from './client.ts'

export type Scope = 'user:read' | 'user:write' | 'admin:read' | 'admin:write'

/** Who is signed in: the token of the session, what it may do, and its organization. */
export interface Session {
  token: { id: string; name: string }
  organization: { id: string; name: string }
  scopes: Scope[]
  /** Whether the organization owns the machine: only then may it load models and read engine logs. */
  owns_machine: boolean
  /** Unix seconds. */
  expires_at: number
}

const json = { 'content-type': 'application/json' }

/** Rejects with ApiFailure 401 if nobody is signed in. */
export const readSession = async (): Promise<Session> => (await send('/api/session')).json() as Promise<Session>

/** Exchanges a token or a one-time code for a session. */
export const signIn = async (by: { token: string } | { code: string }): Promise<Session> =>
  (await send('/api/session', { method: 'POST', headers: json, body: JSON.stringify(by) })).json() as Promise<Session>

export const endSession = async (): Promise<void> => void (await send('/api/session', { method: 'DELETE' }))

interface SignedIn {
  session: Session
  /** Whether the session has the scope. What it may not do is not offered. */
  can: (scope: Scope) => boolean
  signOut: () => Promise<void>
}

export const SessionContext = createContext<SignedIn | undefined>(undefined)

/** Who is signed in. Only below the sign-in. */
export function useSession(): SignedIn {
  const signedIn = useContext(SessionContext)
  if (!signedIn) throw new Error('useSession is only for pages behind the sign-in.')
  return signedIn
}
