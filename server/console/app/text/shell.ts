import { named } from './named.ts'

/** Texts of the frame around the pages, of the sign-in, and of states that every page has. */
export const shellText = {
  ...named('menu', 'closeMenu', 'loading', 'signOut', 'guides', 'close', 'copy', 'copied', 'cancel'),
  product: 'infer',
  running: (version: string, since: string) => `infer ${version}, running for ${since}`,
  skip: 'Skip to content',
  navigation: 'Pages',
  pages: named(
    'overview',
    'playground',
    'models',
    'jobs',
    'workflows',
    'executions',
    'library',
    'usage',
    'organizations',
    'system',
  ),
  noSuchPage: 'There is no page at this address. Choose one in the navigation.',
  notPermitted: (scope: string) =>
    `Your token lacks the scope ${scope}, which this page needs. Sign in with a token that has it.`,
  loadFailed: 'This part of the console could not be loaded. The server may have been updated: reload the page.',
  reload: 'Reload page',
  retry: 'Try again',
  offline:
    'The connection to the server is lost. What you see may be out of date; it is updated when the server answers.',
  reconnect: 'Connect now',
  account: (token: string, organization: string) => `Signed in with the token ${token} of ${organization}`,
  theme: { auto: 'Theme: as the system', light: 'Theme: light', dark: 'Theme: dark' },
  documentation: 'API reference',
  shortcuts: 'Keyboard shortcuts',
  shortcutList: { search: 'Search on this page', go: (page: string) => `Go to ${page}`, show: 'Show this list' },
  keyThen: 'then',
  sessionEnded: 'The session has ended. Sign in again.',
  signIn: {
    title: 'Sign in to infer',
    token: 'API token',
    tokenHint: 'It begins with sk-infer-. The console can do what this token may do.',
    submit: 'Sign in',
    withCode: 'Signing in with the link …',
    help: 'No token at hand? On the machine itself run',
    command: 'infer console',
    helpEnd: 'It opens this page signed in.',
  },
  more: 'Show more',
} as const
