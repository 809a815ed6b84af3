import { Component, type ReactNode, useEffect, useRef, useState } from 'react'
import { flushSync } from 'react-dom'
import { Redirect, Route, Router, Switch } from 'wouter'
import {
  ApiFailure,
  api,
  onSessionEnd,
  queryClient,
  readSession,
  type Scope,
  type Session,
  SessionContext,
  useSession,
} from './api/client.ts'
import { firstSession } from './api/first-session.ts'
import { startLive, stopLive, useLiveState } from './api/live.ts'
import { endPerson } from './api/person-end.ts'
import { useAttention } from './api/use-attention.ts'
import { Announcements, announce } from './components/announcements.tsx'
import { Failed, Loading } from './components/page.tsx'
import { useTitleName } from './components/page-title.ts'
import { ShownSecret } from './components/shown-secret.tsx'
import { NotedList } from './components/way-back.ts'
import { type Page, pages } from './pages.ts'
import { Shell } from './shell/shell.tsx'
import { SignIn } from './shell/sign-in.tsx'
import { shellText } from './text/shell.ts'

type State =
  | { kind: 'reading' }
  | { kind: 'signed-out'; reason?: string }
  | { kind: 'signed-in'; session: Session }
  | { kind: 'failed'; failure: Error }

/** Tells the other tabs of this browser that the person has signed out. */
const otherTabs = new BroadcastChannel('infer.session')

/** Removes what this browser keeps for a person, such as conversations: it must not reach the next one. */
function forgetPerson(): void {
  for (const storage of [localStorage, sessionStorage])
    for (const name of Object.keys(storage)) if (name.startsWith('infer.person.')) storage.removeItem(name)
}

/** The console: the sign-in, or the pages of the session. */
export function Console() {
  const [state, setState] = useState<State>({ kind: 'reading' })
  const [attempt, setAttempt] = useState(0)

  useEffect(() => {
    // A link with a one-time code replaces the session that the browser may have.
    if (/[#&]code=/.test(location.hash)) return setState({ kind: 'signed-out' })
    readSession(attempt === 0 ? firstSession : undefined).then(
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

  useEffect(() => {
    const end = () => {
      // Pages that are left write once more what they have.
      flushSync(() => setState({ kind: 'signed-out' }))
      forgetPerson()
    }
    otherTabs.addEventListener('message', end)
    return () => otherTabs.removeEventListener('message', end)
  }, [])

  const signedIn = state.kind === 'signed-in'
  useEffect(() => {
    if (!signedIn) return
    startLive()
    return () => {
      stopLive()
      endPerson()
      queryClient.clear()
    }
  }, [signedIn])

  return (
    <Router base="/console">
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
      <Announcements />
      <ShownSecret />
    </Router>
  )
}

function Pages({ session, signedOut }: { session: Session; signedOut: () => void }) {
  const can = (scope: Scope) => session.scopes.includes(scope)
  const ownerCan = (scope: Scope) => session.owns_machine && can(scope)
  const signOut = async () => {
    try {
      await api.DELETE('/api/session')
    } catch (thrown) {
      // Without an answer the session goes on, and the page must not look as if it had ended.
      if (!(thrown instanceof ApiFailure && thrown.status === 401)) return announce('bad', (thrown as Error).message)
    }
    // Pages that are left keep what they have, so they are left before it is removed.
    flushSync(signedOut)
    forgetPerson()
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has none
    otherTabs.postMessage('signed-out')
  }
  return (
    <SessionContext value={{ session, can, ownerCan, signOut }}>
      <Shell>
        <Switch>
          {pages.map(page => (
            <Route key={page.path} path={page.path === '/' ? '/' : `${page.path}/*?`}>
              <OpenedPage page={page} />
            </Route>
          ))}
          <Route path="/sign-in">
            <Redirect to="/" replace />
          </Route>
          <Route>
            <Failed failure={new ApiFailure(shellText.noSuchPage, 404, 'not_found')} />
          </Route>
        </Switch>
      </Shell>
    </SessionContext>
  )
}

/** Loads a page when it is opened, and shows its failures in its place. */
function OpenedPage({ page: { path, name, scope, Content } }: { page: Page }) {
  const { can } = useSession()
  const shown = useTitleName()
  const attention = useAttention().length
  if (!can(scope)) return <Failed failure={new ApiFailure(shellText.notPermitted(scope), 403, 'insufficient_scope')} />
  return (
    <PageBoundary key={path}>
      <title>{pageTitle([shown, name, shellText.product], attention)}</title>
      <NotedList path={path} />
      <Content />
    </PageBoundary>
  )
}

/** `(2) demo · Models · infer`: how many things need attention, then what is shown. */
const pageTitle = (parts: readonly (string | undefined)[], attention: number): string =>
  (attention > 0 ? `(${attention}) ` : '') + [...new Set(parts)].filter(Boolean).join(' · ')

/** Keeps the navigation usable when a page fails. */
class PageBoundary extends Component<{ children: ReactNode }, { failure?: Error }> {
  override state: { failure?: Error } = {}
  static getDerivedStateFromError = (failure: Error) => ({ failure })
  override render() {
    const { failure } = this.state
    if (!failure) return this.props.children
    if (/dynamically imported module|module script/i.test(failure.message)) return <NotLoaded />
    return <Failed failure={failure} retry={() => location.reload()} retryText={shellText.reload} />
  }
}

/**
 * Says why the script of a page is not there. Without an answer of the server the page opens by itself once there is one;
 * after an upgrade the script of the older build is gone.
 */
function NotLoaded() {
  const live = useLiveState()
  const [isReachable, setReachable] = useState<boolean>()
  useEffect(() => {
    // Any answer will do, also a refusal.
    readSession().then(
      () => setReachable(true),
      (failure: Error) => setReachable(!(failure instanceof ApiFailure && failure.status === 0)),
    )
  }, [live])
  const wasDown = useRef(false)
  useEffect(() => {
    if (isReachable === false) wasDown.current = true
    else if (isReachable && wasDown.current) location.reload()
  }, [isReachable])
  if (isReachable === undefined) return <Loading />
  const failure = new Error(isReachable ? shellText.loadFailed : shellText.notLoaded)
  return <Failed failure={failure} retry={() => location.reload()} retryText={shellText.reload} />
}
