import { Component, lazy, type ReactNode, Suspense } from 'react'
import { ApiFailure } from '../api/failure.ts'
import { useSession } from '../api/session.ts'
import { Failed, Loading } from '../components/page.tsx'
import type { Page } from '../pages.ts'
import { shellText } from '../text/shell.ts'

const components = new Map<Page, ReturnType<typeof lazy>>()

/** Loads a page when it is opened, and shows its failures in its place. */
export function LazyPage({ page }: { page: Page }) {
  const { can } = useSession()
  if (!can(page.scope))
    return (
      <Failed
        failure={new ApiFailure(shellText.notPermitted(page.scope), { status: 403, code: 'insufficient_scope' })}
      />
    )
  let Content = components.get(page)
  if (!Content) components.set(page, (Content = lazy(page.load)))
  return (
    <PageBoundary key={page.path}>
      <Suspense fallback={<Loading />}>
        <title>{`${page.name} · ${shellText.product}`}</title>
        <Content />
      </Suspense>
    </PageBoundary>
  )
}

/** Keeps the navigation usable when a page fails. */
class PageBoundary extends Component<{ children: ReactNode }, { failure?: Error }> {
  override state: { failure?: Error } = {}
  static getDerivedStateFromError = (failure: Error) => ({ failure })
  override render() {
    const { failure } = this.state
    if (!failure) return this.props.children
    // A chunk of an older build is gone after an upgrade of the server.
    const shown = /dynamically imported module|module script/i.test(failure.message)
      ? new Error(shellText.loadFailed)
      : failure
    return <Failed failure={shown} retry={() => location.reload()} retryText={shellText.reload} />
  }
}
