import { useEffect, useState } from 'react'
import { Route, Router, Switch, useLocation } from 'wouter'
import { onSessionEnd } from './api/client.ts'
import { ApiFailure } from './api/failure.ts'
import { startLive, stopLive } from './api/live.ts'
import { queryClient } from './api/query-client.ts'
import { endSession, readSession, type Session, SessionContext } from './api/session.ts'
import { Announcements, useAnnounce } from './components/announcements.tsx'
import { Failed } from './components/page.tsx'
import { pages } from './pages.ts'
import { LazyPage } from './shell/lazy-page.tsx'
import { Shell } from './shell/shell.tsx'
import { SignIn } from './shell/sign-in.tsx'
import { shellText } from './text/shell.ts'

type State =
  | { kind: 'reading' }
  | { kind: 'signed-out'; reason?: string }
  | { kind: 'signed-in'; session: Session }
  | { kind: 'failed'; failure: Error }

/** The console: the sign-in, or the pages of the session. */
export function Console() {
  const [state, setState] = useState<State>({ kind: 'reading' })
  const [attempt, setAttempt] = useState(0)

  useEffect(() => {
    // A link with a one-time code replaces the session that the browser may have.
    if (/[#&]code=/.test(location.hash)) return setState({ kind: 'signed-out' })
    readSession().then(
      session => setState({ kind: 'signed-in', session }),
      (failure: Error) =>
        setState(
          failure instanceof ApiFailure && failure.status === 401
            ? { kind: 'signed-out' }
            : { kind: 'failed', failure },
        ),
    )
  }, [attempt])

  useEffect(
    () =>
      onSessionEnd(({ code, message }) => {
        // A browser forgets the cookie of a session whose time is over, and then sends none.
        const reason = code === 'missing_api_key' ? shellText.sessionEnded : message
        setState(now => (now.kind === 'signed-in' ? { kind: 'signed-out', reason } : now))
      }),
    [],
  )

  const signedIn = state.kind === 'signed-in'
  useEffect(() => {
    if (!signedIn) return
    startLive()
    return () => {
      stopLive()
      queryClient.clear()
    }
  }, [signedIn])

  return (
    <Router base="/console">
      <Announcements>
        {state.kind === 'failed' && (
          <main className="mx-auto max-w-xl p-6">
            <Failed failure={state.failure} retry={() => setAttempt(attempt + 1)} />
          </main>
        )}
        {state.kind === 'signed-out' && (
          <SignIn reason={state.reason} signedIn={session => setState({ kind: 'signed-in', session })} />
        )}
        {state.kind === 'signed-in' && (
          <Pages session={state.session} signedOut={() => setState({ kind: 'signed-out' })} />
        )}
      </Announcements>
    </Router>
  )
}

function Pages({ session, signedOut }: { session: Session; signedOut: () => void }) {
  const can = (scope: Session['scopes'][number]) => session.scopes.includes(scope)
  const announce = useAnnounce()
  const signOut = async () => {
    try {
      await endSession()
    } catch (thrown) {
      // Without an answer the session goes on, and the page must not look as if it had ended.
      if (!(thrown instanceof ApiFailure && thrown.status === 401)) return announce('bad', (thrown as Error).message)
    }
    // What the browser keeps for a person, such as conversations, must not reach the next one.
    for (const name of Object.keys(localStorage)) if (name.startsWith('infer.person.')) localStorage.removeItem(name)
    signedOut()
  }
  return (
    <SessionContext value={{ session, can, signOut }}>
      <Shell>
        <Switch>
          {pages.map(page => (
            <Route key={page.path} path={page.path === '/' ? '/' : `${page.path}/*?`}>
              <LazyPage page={page} />
            </Route>
          ))}
          <Route path="/sign-in">
            <Redirect to="/" />
          </Route>
          <Route>
            <Failed failure={new ApiFailure(shellText.noSuchPage, { status: 404, code: 'not_found' })} />
          </Route>
        </Switch>
      </Shell>
    </SessionContext>
  )
}

function Redirect({ to }: { to: string }) {
  const [, go] = useLocation()
  useEffect(() => go(to, { replace: true }), [to, go])
  return null
}
