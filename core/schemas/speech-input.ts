/** Characters that a model takes in one text where its configuration does not say. */
export const defaultSpeechInput = 4096

/** The most characters of one text that a configuration can allow. */
export const longestSpeechInput = 65_536
