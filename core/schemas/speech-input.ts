/** Default maximum length of one speech input, in characters. */
export const defaultSpeechInput = 4096

/** The largest maximum that a configuration can set, in characters. */
export const longestSpeechInput = 65_536
